package keep

import (
	"encoding/gob"
	"math/rand"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/quick"
	"time"

	"gonbatch/internal/rundir"
)

type shape interface{ Area() float64 }

type square struct{ Side float64 }

func (s square) Area() float64 { return s.Side * s.Side }

// session creates a folder for kept values, and the file for errors.
func session(t *testing.T) (dir, errs string) {
	t.Helper()
	dir, errs = t.TempDir(), filepath.Join(t.TempDir(), "errors")
	t.Setenv(rundir.EnvKeepDir, dir)
	t.Setenv(rundir.EnvKeepErrors, errs)
	return dir, errs
}

// TestRegisteredLate: if an init function of the program registers a value's type, the value is
// loaded after the init functions.
func TestRegisteredLate(t *testing.T) {
	dir, _ := session(t)
	gob.RegisterName("square", square{})
	var x shape = square{2}
	Vars{"x": &x}.Save()
	path := rundir.KeptValue(dir, "x", 0)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// As if the type had been registered under a name that only an init function knows.
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(string(text), "square", "oblong")), 0o600); err != nil {
		t.Fatal(err)
	}
	var y shape
	vars := Vars{"x": &y}
	vars.Load(nil)
	if y != nil {
		t.Fatalf("loaded %v before its type was registered", y)
	}
	registerOblong()
	vars.Begin()
	if y == nil || y.Area() != 4 {
		t.Errorf("loaded %v, want a shape of 4", y)
	}
}

type oblong struct{ Side float64 }

func (o oblong) Area() float64 { return o.Side * o.Side }

func registerOblong() { gob.RegisterName("oblong", oblong{}) }

// TestUnreadStays: a value that could not be loaded stays as long as the program does not set a new
// one, and then it is set aside.
func TestUnreadStays(t *testing.T) {
	for _, inJob := range []bool{false, true} {
		dir, _ := session(t)
		run := func(_ string, program func()) { program() }
		path := rundir.KeptValue(dir, "x", 0)
		if inJob {
			var one func(string, int, int, func())
			var d rundir.Dir
			d, one = job(t, "first", "second", "third", "fourth")
			run = func(cell string, program func()) {
				one(cell, 0, 1, program)
				if err := rundir.MarkFinished(d, cell, 1); err != nil {
					t.Fatal(err)
				}
			}
			path = rundir.KeptValue(d.KeptAfter("third"), "x", 0)
		}
		run("first", func() { x := "precious"; Vars{"x": &x}.Save() })
		another := func(set int) func() {
			return func() {
				x := 5
				vars := Vars{"x": &x}
				vars.Load(nil)
				save := vars.Begin()
				x += set
				save()
			}
		}
		run("second", another(0))
		run("third", func() {
			x := ""
			vars := Vars{"x": &x}
			vars.Load(nil)
			vars.Begin()()
			if x != "precious" {
				t.Errorf("job %t: the value is %q, want the one that the program between could not load", inJob, x)
			}
		})
		run("fourth", another(1))
		aside := path
		if !inJob {
			aside += ".unread"
		}
		if text, err := os.ReadFile(aside); err != nil || !strings.Contains(string(text), "precious") {
			t.Errorf("job %t: the value is gone: %q, %v", inJob, text, err)
		}
		if !inJob {
			x := 0
			if (Vars{"x": &x}).Load(nil); x != 6 {
				t.Errorf("the new value is %d, want 6", x)
			}
		}
	}
}

// TestDeclaration: a value is loaded as long as the declaration is the one under which it was
// saved.
func TestDeclaration(t *testing.T) {
	session(t)
	for i, step := range []struct {
		hash string
		want int
	}{{"a", 1}, {"a", 2}, {"", 3}, {"b", 4}, {"c", 1}, {"c", 2}, {"b", 1}, {"b", 2}, {New + "b", 1}, {"b", 2}} {
		x := 0
		vars := Vars{"x": &x}
		vars.Load(Declared{"x": step.hash})
		save := vars.Begin()
		x++
		save()
		if x != step.want {
			t.Errorf("step %d, declaration %q: %d, want %d", i, step.hash, x, step.want)
		}
	}
}

// TestOpen: the mark exists while a main that has not saved its variables is running.
func TestOpen(t *testing.T) {
	_, errs := session(t)
	isOpen := func() bool { _, err := os.Stat(rundir.KeptOpen(errs)); return err == nil }
	x := 1
	vars := Vars{"x": &x}
	vars.Load(nil)
	save := vars.Begin()
	if !isOpen() {
		t.Error("no mark in a main")
	}
	x = 2
	SaveNow()
	if isOpen() {
		t.Error("a mark after SaveNow")
	}
	x = 0
	if (Vars{"x": &x}).Load(nil); x != 2 {
		t.Errorf("SaveNow has saved %d, want 2", x)
	}
	save()
}

type celsius float64

// TestNumbers: slices of numbers are loaded as they were, and a damaged file is an error.
func TestNumbers(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	dir, errs := session(t)
	for range 20 {
		for _, typ := range []reflect.Type{
			reflect.TypeFor[[]float64](), reflect.TypeFor[[][]uint8](), reflect.TypeFor[[][][]int](), reflect.TypeFor[[]celsius](),
			reflect.TypeFor[[]complex64](), reflect.TypeFor[[]bool](),
		} {
			if _, ok := isNumbers(typ); !ok {
				t.Fatalf("%s is not written as it lies in memory", typ)
			}
			before, _ := quick.Value(typ, random)
			x, y := reflect.New(typ), reflect.New(typ)
			x.Elem().Set(before)
			if random.Intn(5) == 0 {
				x.Elem().SetZero()
			}
			Vars{"x": x.Interface()}.Save()
			Vars{"x": y.Interface()}.Load(nil)
			if text, _ := os.ReadFile(errs); len(text) > 0 || !reflect.DeepEqual(x.Interface(), y.Interface()) {
				t.Fatalf("%v came back as %v: %s", x.Elem(), y.Elem(), text)
			}
			checkDamaged(t, rundir.KeptValue(dir, "x", 0), typ, random)
		}
	}
}

// checkDamaged cuts off a file and checks that no value is loaded.
func checkDamaged(t *testing.T, path string, typ reflect.Type, random *rand.Rand) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	cut := slices.Clone(text[:rundir.KeptHeader+random.Intn(len(text)-rundir.KeptHeader)])
	if err := os.WriteFile(path, cut, 0o600); err != nil {
		t.Fatal(err)
	}
	z := reflect.New(typ)
	vars := Vars{"x": z.Interface()}
	vars.Load(nil)
	if program.unread["x"] == nil || !z.Elem().IsNil() {
		t.Fatalf("%d of %d bytes were loaded as %v", len(cut), len(text), z.Elem())
	}
	program.unread = nil
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

// TestAnotherNumber: numbers of another type are not loaded.
func TestAnotherNumber(t *testing.T) {
	session(t)
	x, y := []float64{1}, []int64{7}
	Vars{"x": &x}.Save()
	if (Vars{"x": &y}).Load(nil); y[0] != 7 {
		t.Errorf("floats were loaded as %v", y)
	}
}

// TestExit runs a separate program, because it ends.
func TestExit(t *testing.T) {
	if os.Getenv("KEEP_TEST_EXIT") != "" {
		x := 1
		vars := Vars{"x": &x}
		vars.Load(nil)
		defer vars.Begin()()
		x = 2
		Exit(3)
	}
	session(t)
	if code := runSelf(t, "TestExit", "KEEP_TEST_EXIT=1"); code != 3 {
		t.Errorf("exit status %d, want 3", code)
	}
	x := 0
	if (Vars{"x": &x}).Load(nil); x != 2 {
		t.Errorf("x is %d, want 2", x)
	}
}

// TestEndWhileOthersWrite: goroutines that change a map while it is being saved don't crash the
// program, whether it exits or main returns.
func TestEndWhileOthersWrite(t *testing.T) {
	if end := os.Getenv("KEEP_TEST_WRITE"); end != "" {
		defer os.Exit(3)
		m := map[int][]string{}
		vars := Vars{"m": &m}
		vars.Load(nil)
		defer vars.Begin()()
		started := make(chan bool)
		go func() {
			for i := 0; ; i++ {
				m[i%5000] = append(m[i%5000], "text")
				if i == 20000 {
					close(started)
				}
				if i > 20000 && i%200 == 0 {
					time.Sleep(time.Microsecond)
				}
			}
		}()
		<-started
		if end == "exit" {
			Exit(3)
		}
		return
	}
	session(t)
	for range 5 {
		for _, end := range []string{"exit", "return"} {
			if code := runSelf(t, "TestEndWhileOthersWrite", "KEEP_TEST_WRITE="+end); code != 3 {
				t.Fatalf("%s: exit status %d, want 3", end, code)
			}
		}
	}
}
