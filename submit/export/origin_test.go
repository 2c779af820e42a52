package export

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gonbatch/internal/nbformat"
	"gonbatch/submit/export/nbcell"
)

// oddCells are cells that make export complain, alone or together.
var oddCells = []string{
	"var kept = 1\n%keep kept", "%%\nkept++", "%rm kept", "%%\nprintln(kept)", "var lr = 0.1", "var lr = 0.2", "func f() { panic(1) }",
	"%%\nf()", "%%\nf(", "%exce f", "%capture out\n%%\nf()", "!cat out", "%%writefile data.txt\nx",
	"%%\nprintln(data)", "!*go get example.com/no@latest", "!ls", "%cd /tmp", "import \"example.com/no\"\n%%\nno.F()", "%test\nfunc TestA(t *testing.T) {}",
	"%goflags --cover", "%env A 1", "%%bash\nexit 1", "%%\nos.Exit(1)", "%%\nlog.Fatal(1)", "%%\nfor {\n}", "type t int\nfunc (t) m() {}", "func (t) m() { f() }",
	"var kept = 2\n%keep kept", "%%\nkept = 3", "%%\nprint(kept)", "%%\nkept--", "%%\nflag.Parse()", "var n = flag.Int(\"n\", 1, \"\")", "%reset", "%with_inputs\n!cat", "const (\n\ta = iota\n\tb\n)", "import \"github.com/janpfeifer/gonb/gonbui\"\n%%\ngonbui.RequestInput(\"\", false)",
}

// TestOrigin exports random notebooks twice, the second time as made from another notebook, in
// which each cell's number is larger by 100. What export says then names that one and its cells.
func TestOrigin(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	said := 0
	for range 2000 {
		sources := make([]string, 1+random.IntN(6))
		for i := range sources {
			sources[i] = oddCells[random.IntN(len(oddCells))]
		}
		opt := Options{SourceDir: sourceDir(t), Kept: random.IntN(2) == 0}
		if random.IntN(3) == 0 {
			opt.Parameters = map[string]string{"lr": "1", "rate": "2"}
			opt.ParameterPlaces = map[string]string{}
		}
		pick := 0
		if random.IntN(3) == 0 {
			pick = 1 + random.IntN(len(sources))
			opt.Cells = []string{strconv.Itoa(pick)}
		}
		want := saidOf(labeled(sources, nil), opt)
		if pick > 0 {
			opt.Cells = []string{strconv.Itoa(pick + 100)}
		}
		got := saidOf(labeled(sources, func(n int) string { return strconv.Itoa(n + 100) }), opt)
		want = moved(want)
		if got != want {
			t.Fatalf("%q:\n%s\nwant\n%s", sources, got, want)
		}
		said += strings.Count(got, "cell")
	}
	if said < 2000 {
		t.Errorf("only %d cells named", said)
	}
}

// labeled returns a notebook of the cells, those that set lr tagged as parameters.
func labeled(sources []string, label func(number int) string) *nbformat.Notebook {
	nb := cells(sources...)
	for _, c := range nb.Cells {
		if strings.HasPrefix(c.Source, "var lr") {
			c.Tags = []string{nbcell.ParametersTag}
		}
		c.ID = ""
	}
	if label == nil {
		return nb
	}
	nb.Origin = &nbformat.Origin{Notebook: "user.ipynb"}
	for _, c := range nb.Cells {
		c.Alias = label(c.Number)
	}
	return nb
}

// saidOf returns everything that export says about a notebook.
func saidOf(nb *nbformat.Notebook, opt Options) string {
	m, err := FromNotebook(nb, opt)
	if err != nil {
		return err.Error()
	}
	lines := []string{m.Notebook}
	for _, notes := range [][]nbcell.Note{m.Warnings, m.Notes} {
		for _, note := range notes {
			lines = append(lines, note.String())
		}
	}
	for _, made := range m.Cells {
		lines = append(lines, fmt.Sprint(made.Name, " cell ", made.Label()), string(m.Files[made.Source()]), string(m.Files[made.Script()]))
	}
	return strings.Join(lines, "\n")
}

var (
	namedCells = regexp.MustCompile(`(cells?[ -]|shell-|--cell )(\d+)((, \d+)*( and \d+)?)`)
	number     = regexp.MustCompile(`\d+`)
)

// moved adds 100 to the cells' numbers in a text, and renames the notebook.
func moved(text string) string {
	text = namedCells.ReplaceAllStringFunc(text, func(found string) string {
		return number.ReplaceAllStringFunc(found, func(n string) string {
			value, _ := strconv.Atoi(n)
			return strconv.Itoa(value + 100)
		})
	})
	return strings.ReplaceAll(text, "n.ipynb", "user.ipynb")
}

func TestPickByAlias(t *testing.T) {
	nb := labeled([]string{"%%\nprintln(1)", "%%\nprintln(2)"}, func(n int) string { return []string{"9", "[3]"}[n-1] })
	for pick, want := range map[string]int{"9": 1, "[3]": 2} {
		m, err := FromNotebook(nb, Options{SourceDir: sourceDir(t), Cells: []string{pick}})
		if err != nil || len(m.Cells) != 1 || m.Cells[0].Number != want {
			t.Errorf("--cell %s: %+v, %v", pick, m, err)
		}
	}
	m, err := FromNotebook(nb, Options{SourceDir: sourceDir(t)})
	if err != nil || !slices.Equal(m.CellNames(), []string{"cell-9", "cell-3"}) {
		t.Errorf("%v, %v", m, err)
	}
	if got := nbcell.DescribePosition(nb, nb.Name(), "user.ipynb[cell [3]]:2"); !strings.HasPrefix(got, "user.ipynb, cell [3], line 2:") {
		t.Errorf("%q", got)
	}
}

// TestNamesOfRuns: the cell that was executed fourth, and isn't in the file, doesn't take the name
// of cell 4.
func TestNamesOfRuns(t *testing.T) {
	nb := labeled([]string{"!ls\n%%\nprintln(1)", "!ls\n%%\nprintln(2)"}, func(n int) string { return []string{"[4]", "4"}[n-1] })
	m, err := FromNotebook(nb, Options{SourceDir: sourceDir(t)})
	if want := []string{"shell-run-4", "cell-run-4", "shell-4", "cell-4"}; err != nil || !slices.Equal(m.CellNames(), want) {
		t.Errorf("%v, %v, want %v", m.CellNames(), err, want)
	}
}
