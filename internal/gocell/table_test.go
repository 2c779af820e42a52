package gocell

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write docs/magics.md and stdlib.txt")

// TestTable: each row is complete, and found by its name.
func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for i, m := range Magics {
		if seen[m.Name] || Lookup(m.Name) != &Magics[i] {
			t.Errorf("%s is there twice", m.Name)
		}
		seen[m.Name] = true
		if !strings.HasPrefix(m.Usage, m.Name) || !strings.HasSuffix(m.Help, ".") || m.Runner == "" || m.InJob == "" {
			t.Errorf("%s: its row is not complete: %+v", m.Name, m)
		}
		if why := m.InJob == Ignored || m.InJob == LeftOut || m.InJob == Refused; why && m.Why == "" {
			t.Errorf("%s is %s in a job: say why", m.Name, m.InJob)
		}
		if first := Parse(strings.ReplaceAll(m.Usage, "COMMAND", "ls")); (first.Program != nil) != m.WholeCell {
			t.Errorf("%s: it takes the whole cell: %v", m.Name, m.WholeCell)
		}
	}
}

func TestHelpText(t *testing.T) {
	text := HelpText()
	for _, m := range Magics {
		if has := strings.Contains(text, "- `"+m.Usage+"`: "); has != (m.Runner != GoNB && m.Name[0] == '%') {
			t.Errorf("%s, run by %s, is in the help: %v", m.Name, m.Runner, has)
		}
	}
}

// TestDocs: docs/magics.md matches the table.
func TestDocs(t *testing.T) {
	const file = "../../docs/magics.md"
	var b strings.Builder
	b.WriteString("# Magics\n\n<!-- Generated from internal/gocell by: go test ./internal/gocell -run TestDocs -update -->\n\n" +
		"| Magic | What it does | Run by | In a job |\n|---|---|---|---|\n")
	for _, m := range Magics {
		job := string(m.InJob)
		if m.Why != "" {
			job += ": it " + m.Why
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", m.Usage, m.Help, m.Runner, job)
	}
	b.WriteString("\nGoNB takes any line that begins with % or ! for a magic or a command, even inside a block comment or\n" +
		"a raw string. A job does the same, so that a notebook means the same in all programs that run it.\n" +
		"The kernel, `submit` and `submit check` warn about such a line. Indent it to keep it as text.\n")
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(b.String(), string(got)); diff != "" {
		t.Errorf("docs/magics.md is not the table (-table +docs):\n%s", diff)
	}
}
