package keep

import (
	"fmt"
	"io"
	"math/rand"
	"os"
	"strings"
	"testing"

	"gonbatch/internal/rundir"
)

// keptModel is a simple model of a kept variable whose initial value is 0.
type keptModel struct {
	// hash and value are in the file; some is set if it exists.
	hash  string
	value int
	some  bool
	// aside is the value that was put aside.
	aside int
}

// run is a program with a declaration and code. It sets the variable, unless set is 0. It returns
// the value with which main began, and whether a kept value stays unread.
func (m *keptModel) run(hash string, set int) (began int, unread bool) {
	sameDeclaration := m.some && m.hash[:codeAt] == hash[:codeAt]
	switch {
	case sameDeclaration && m.hash == hash:
		began = m.value
	case sameDeclaration:
		unread = true
	}
	if unread && set == 0 {
		return began, unread
	}
	if unread {
		m.aside = m.value
	}
	m.hash, m.value, m.some = hash, began, true
	if set != 0 {
		m.value = set
	}
	return began, unread
}

// TestOtherCode compares with the model: a value that other code has made is not loaded. It is not
// lost either, and is there again with the earlier code.
func TestOtherCode(t *testing.T) {
	random := rand.New(rand.NewSource(7))
	dir, _ := session(t)
	defer Vars{}.Load(nil)
	var m keptModel
	for i := range 400 {
		hash := fmt.Sprintf("%-*.*s%d", codeAt, codeAt, strings.Repeat(string(rune('a'+random.Intn(2))), codeAt), 1+random.Intn(2))
		set := random.Intn(3) * random.Intn(100)
		want, unread := m.run(hash, set)
		x := 0
		vars := Vars{"x": &x}
		message := stderrOf(t, func() {
			vars.Load(Declared{"x": hash})
			save := vars.Begin()
			if x != want {
				t.Fatalf("program %d, %q: it begins with %d, want %d", i, hash, x, want)
			}
			if set != 0 {
				x = set
			}
			save()
		})
		if strings.Contains(message, "%keep x: a package or file that its declaration uses has changed since it was kept: it has its initial value") != unread {
			t.Errorf("program %d, %q: message %q", i, hash, message)
		}
	}
	if m.aside == 0 {
		t.Fatal("no value was ever put aside")
	}
	if text, err := os.ReadFile(rundir.KeptValue(dir, "x", 0) + ".unread"); err != nil || len(text) == 0 {
		t.Errorf("the value that was put aside is gone: %v", err)
	}
}

// stderrOf returns what a function writes to standard error.
func stderrOf(t *testing.T, f func()) string {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	before := os.Stderr
	os.Stderr = w
	defer func() { os.Stderr = before }()
	f()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
