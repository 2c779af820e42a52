package corpus

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gonbatch/internal/gocell"
	"gonbatch/internal/nbformat"
	"gonbatch/kernel/cell"
	"gonbatch/submit/export"
	"gonbatch/submit/export/nbcell"
)

// snippets are the lines of random cells: each magic as it may be used, and Go code that could be
// mistaken for one.
var snippets = []string{
	"%%", "%% -n 1", "%main", "%exec f", "% \tkeep n", "%keep n, m", "%keep -d n", "%env A b", "//gonb:%env \\\nA \"b c\"", "%args -v \\", "%time", "%who",
	"%jobs", "%wait 7", "%result 7", "%submit --nodes 2", "%allow_fail", "%reset", "%ls", "%distributed 2", "%autoget", "%nothing", "%kep n", "%exec", "%%bash",
	"%%sh", "%%submit", "!true", "! echo a \\", "//gonb:!echo b", "!*go get example.com/x@v1.0.0", " %indented", "", "\t", "% ", "!",
	"var n = 1", "var m int", "func f() int { return n }", "type T struct{ n int }", "n", "f()", "n++", "_ = `", "%d`", "/*", "!done */", "// %time", "package main",
	"func main() { f() }", "}", "\"%%\"",
}

func randomCell(r *rand.Rand) string {
	ends := []string{"\n", "\n", "\n", "\r\n"}
	var text strings.Builder
	for range 1 + r.IntN(6) {
		text.WriteString(snippets[r.IntN(len(snippets))] + ends[r.IntN(len(ends))])
	}
	return text.String()
}

// TestKernelAndJobAgree checks that the kernel and a job parse random cells alike: they reject the
// same magics with the same message, run the same shell commands and the same mains, and leave the
// same lines of Go.
func TestKernelAndJobAgree(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	seen := map[string]int{}
	for range 2000 {
		source := randomCell(r)
		seen[checkAgreement(t, root, source)]++
	}
	for _, want := range []string{"refused", "not Go", "declares", "runs a main", "runs commands"} {
		if seen[want] < 20 {
			t.Errorf("only %d random cells are %q", seen[want], want)
		}
	}
}

// checkAgreement compares both sides, and returns what kind of cell it is.
func checkAgreement(t *testing.T, root, source string) string {
	t.Helper()
	prepared := cell.Prepare(source, "status", "")
	nb := &nbformat.Notebook{Path: "n.ipynb", Major: 4, Cells: []*nbformat.Cell{
		{Type: nbformat.Code, Number: 1, Source: source}, {Type: nbformat.Code, Number: 2, Source: "%%\nprintln(1)"},
	}}
	module, err := export.FromNotebook(nb, export.Options{SourceDir: root})
	if prepared.Err != nil {
		var mistake *nbcell.Error
		if !errors.As(err, &mistake) || fmt.Sprintf("line %d: %s", mistake.Line, mistake.Message) != prepared.Err.Error() {
			t.Errorf("%q: the kernel says %v, a job %v", source, prepared.Err, err)
		}
		return "refused"
	}
	checkGoLines(t, source, prepared)
	if err != nil {
		return "not Go"
	}
	var commands []int
	main := false
	for _, cell := range module.Cells {
		switch {
		case cell.Number != 1:
		case cell.Shell:
			commands = append(commands, cell.Line)
		default:
			main = true
		}
	}
	lines := strings.Split(prepared.Code, "\n")
	wrapped := slices.DeleteFunc(prepared.Commands, func(line int) bool { return strings.HasPrefix(lines[line-1], "!*") })
	if !slices.Equal(commands, wrapped) {
		t.Errorf("%q: the kernel runs the commands in lines %v, a job those in %v", source, wrapped, commands)
	}
	c := gocell.Parse(source)
	runs := c.File().HasMain() && (c.FirstGo() >= 0 || c.Has(gocell.Exec))
	if main && !cell.HasMain(prepared.Code) || runs && !main {
		t.Errorf("%q: it has a main: %v; the kernel: %v, a job: %v", source, runs, cell.HasMain(prepared.Code), main)
	}
	switch {
	case main:
		return "runs a main"
	case len(commands) > 0:
		return "runs commands"
	}
	return "declares"
}

// checkGoLines checks that GoNB gets each line of Go unchanged, and no line of a magic that it does
// not have; in a string, it gets a line that it drops instead.
func checkGoLines(t *testing.T, source string, prepared cell.Prepared) {
	t.Helper()
	c, lines := gocell.Parse(source), strings.Split(prepared.Code, "\n")
	for _, i := range c.Gone() {
		if lines[i] == "" {
			t.Errorf("%q: line %d stays in the string", source, i+1)
		}
		if lines[i] == "package" {
			lines[i] = ""
		}
	}
	for i, kind := range c.Kinds {
		if kind == gocell.GoLine && lines[i] != c.Lines[i] || kind == gocell.JoinedLine && lines[i] != "" {
			t.Errorf("%q: GoNB gets %q as line %d", source, lines[i], i+1)
		}
	}
	for _, call := range c.Calls {
		if call.Magic().Runner == gocell.Submit && lines[call.Line-1] != "" {
			t.Errorf("%q: GoNB gets %q", source, lines[call.Line-1])
		}
	}
}

// TestCorpusHasAllMagics checks that some notebook uses each magic of GoNB that does something in a
// job.
func TestCorpusHasAllMagics(t *testing.T) {
	used := map[string]bool{}
	for _, c := range load(t) {
		nb, err := nbformat.Read(c.Path)
		if err != nil {
			t.Fatal(err)
		}
		for _, cell := range nb.Cells {
			parsed := gocell.Parse(cell.Source)
			if parsed.Program != nil {
				used[parsed.Program.Name()] = true
			}
			for _, call := range parsed.Calls {
				used[call.Name()] = true
			}
		}
	}
	for _, m := range gocell.Magics {
		// GoNB is built without GX.
		if m.Runner == gocell.GoNB && m.InJob != gocell.Ignored && m.Name != "%%gx" && !used[m.Name] {
			t.Errorf("no notebook has %s, which a job %s", m.Name, m.InJob)
		}
	}
}
