package export

import (
	"strings"
	"testing"
)

// TestTaken: a job's strings lack the lines that GoNB drops from them, and the lines after them
// keep their places.
func TestTaken(t *testing.T) {
	m, err := FromNotebook(cells("%test\nfunc TestA(t *testing.T) {}\n%%\nf()", "var s = `a\n!echo ran\npackage x\n% \nb`\nvar u = 1\n%%\nv := `c\n%time\nd`\n\n// A comment.\nf(s, u, v)\n"), Options{SourceDir: sourceDir(t)})
	if err != nil {
		t.Fatal(err)
	}
	text := string(m.Files["cell-2/main.go"])
	for _, want := range []string{"var s = `a\nb`\n", "//line n.ipynb[cell 2]:6:1\nvar u = 1", "v := `c\nd`\n", "//line n.ipynb[cell 2]:13:1\n\tf(s, u, v)"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	var warnings strings.Builder
	for _, w := range m.Warnings {
		warnings.WriteString(w.String() + "\n")
	}
	for _, want := range []string{"line 2: GoNB runs a line that begins with !, also inside a string", "line 3: GoNB drops", "line 4: GoNB drops", "line 9: GoNB runs", "cell 1, line 3: the cell runs its tests"} {
		if !strings.Contains(warnings.String(), want) {
			t.Errorf("no warning %q in\n%s", want, warnings.String())
		}
	}
	if len(m.Warnings) != 5 {
		t.Errorf("%d warnings, want 5:\n%s", len(m.Warnings), warnings.String())
	}
}
