package magic

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gonbatch/internal/nbformat"
)

// ran returns a cell of a session with the numbers of its first and last run. If number is not 0,
// it is a cell of the saved notebook.
func ran(source string, first, last, number int) Cell {
	return Cell{Source: source, First: first, Last: last, number: number, placed: number > 0}
}

func TestArranged(t *testing.T) {
	const main = "%%\nfmt.Println(n)"
	tests := []struct {
		name        string
		cells, want []Cell
		doubt       string
	}{
		{
			name:  "a cell that was inserted later, in the notebook",
			cells: []Cell{ran("var n = 1", 1, 1, 1), ran(main, 2, 4, 3), ran("var n = 2", 3, 3, 2)},
			want:  []Cell{ran("var n = 1", 1, 1, 1), ran("var n = 2", 3, 3, 2), ran(main, 2, 4, 3)},
		},
		{
			name:  "and not in it",
			cells: []Cell{ran("var n = 1", 1, 1, 1), ran(main, 2, 4, 2), ran("var n = 2", 3, 3, 0)},
			want:  []Cell{ran("var n = 1", 1, 1, 1), ran("var n = 2", 3, 3, 0), ran(main, 2, 4, 2)},
		},
		{
			name:  "the first of two declarations again, in the notebook",
			cells: []Cell{ran("var n = 1", 1, 4, 1), ran("var n = 2", 2, 2, 2), ran(main, 3, 5, 3)},
			want:  []Cell{ran("var n = 1", 1, 4, 1), ran("var n = 2", 2, 2, 2), ran(main, 3, 5, 3)},
			doubt: "cells 1 and 2 both declare n: the job uses cell 2",
		},
		{
			name:  "a declaration again, after its removal",
			cells: []Cell{ran("var n = 1", 1, 3, 1), ran("%rm n", 2, 2, 2), ran(main, 4, 4, 3)},
			want:  []Cell{ran("var n = 1", 1, 3, 1), ran("%rm n", 2, 2, 2), ran(main, 4, 4, 3)},
			doubt: "cell 1 declares n, and ran after cell 2, which is below it and removes it (%rm)",
		},
		{
			name:  "and once more below",
			cells: []Cell{ran("var n = 1", 1, 1, 1), ran("%reset", 2, 2, 2), ran("var n = 2", 3, 3, 3), ran(main, 4, 4, 4)},
			want:  []Cell{ran("var n = 1", 1, 1, 1), ran("%reset", 2, 2, 2), ran("var n = 2", 3, 3, 3), ran(main, 4, 4, 4)},
		},
		{
			name:  "and without one",
			cells: []Cell{ran("var n = 1", 1, 4, 0), ran("var n = 2", 2, 2, 0), ran(main, 3, 3, 0)},
			want:  []Cell{ran("var n = 2", 2, 2, 0), ran("var n = 1", 1, 4, 0), ran(main, 3, 3, 0)},
		},
		{
			name:  "a main cell that declares what a later one uses, again",
			cells: []Cell{ran("func f() {}\n%%\nf()", 1, 3, 0), ran("%%\nf()", 2, 2, 0)},
			want:  []Cell{ran("func f() {}\n%%\nf()", 1, 3, 0), ran("%%\nf()", 2, 2, 0)},
		},
		{
			name:  "methods and functions main",
			cells: []Cell{ran("type a int\nfunc (a) f() {}\nfunc main() {}", 1, 9, 1), ran("func (a) f() { x() }\nfunc main() {}", 2, 2, 2)},
			want:  []Cell{ran("type a int\nfunc (a) f() {}\nfunc main() {}", 1, 9, 1), ran("func (a) f() { x() }\nfunc main() {}", 2, 2, 2)},
			doubt: "cells 1 and 2 both declare a.f",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, doubts := arranged(tt.cells)
			if fmt.Sprint(got) != fmt.Sprint(tt.want) {
				t.Errorf("%+v\nwant %+v", got, tt.want)
			}
			if said := strings.Join(doubts, "\n"); !strings.Contains(said, tt.doubt) || (said == "") != (tt.doubt == "") {
				t.Errorf("doubts %q, want %q", said, tt.doubt)
			}
		})
	}
}

// TestAsRun runs cells at random: declarations made before a main cell ran stand above it.
func TestAsRun(t *testing.T) {
	sources := []string{"var a = 1", "var b = 1", "func c() {}\n%%\nc()", "%%\nd()", "%%\ne()", "var f = 1"}
	random := rand.New(rand.NewPCG(5, 6))
	for range 500 {
		var cells []Cell
		for run := range random.IntN(12) {
			source := sources[random.IntN(len(sources))]
			at := slices.IndexFunc(cells, func(c Cell) bool { return c.Source == source })
			if at < 0 {
				at, cells = len(cells), append(cells, ran(source, run+1, 0, 0))
			}
			cells[at].Last = run + 1
		}
		order, _ := arranged(cells)
		if len(order) != len(cells) {
			t.Fatalf("%+v became %+v", cells, order)
		}
		for i, main := range order {
			for _, below := range order[i+1:] {
				if strings.Contains(main.Source, "%%") && len(declared(below)) > 0 && below.First < main.Last && main.Last < below.Last && len(declared(main)) == 0 {
					t.Fatalf("%+v: %q stands below %q, which has seen it", order, below.Source, main.Source)
				}
			}
		}
	}
}

// TestLabels: messages about a job name the user's cells, each differently. A deleted cell isn't
// called by the number of another one with the same text.
func TestLabels(t *testing.T) {
	const notebook = `{"nbformat":4,"metadata":{},"cells":[
		{"cell_type":"markdown","metadata":{},"source":"a"},
		{"cell_type":"code","id":"kept","metadata":{},"source":"%%\nf()"},
		{"cell_type":"code","metadata":{},"source":"a"},
		{"cell_type":"code","metadata":{},"source":"a"}]}`
	for _, tt := range []struct {
		name  string
		cells []Cell
		want  []string
	}{
		{"a deleted twin", []Cell{{ID: "gone", Source: "%%\nf()", Last: 1}, {ID: "kept", Source: "%%\nf()", Last: 2}}, []string{"[1]", "2"}},
		{"without ids", []Cell{{Source: "a", Last: 1}, {Source: "%%\nf()", Last: 2}, {Source: "a", Last: 3}, {Source: "a", Last: 4}}, []string{"3", "2", "4", "[4]"}},
	} {
		m, dir := newMagics(t, "completed")
		m.opts.Environ = append(m.opts.Environ, "JPY_SESSION_NAME=u.ipynb")
		if err := os.WriteFile(filepath.Join(dir, "u.ipynb"), []byte(notebook), 0o644); err != nil {
			t.Fatal(err)
		}
		if got := labelsOf(m.tagged(tt.cells)); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
	if got := labelsOf(withNumberFree([]Cell{ran("a", 1, 1, 4), ran("b", 2, 2, 5)}, 4)); !slices.Equal(got, []string{"[1]", "5"}) {
		t.Errorf("%q", got)
	}
}

// TestOwnIDs: the ids of cells that a client sends none for aren't names of the job's cells, and an
// earlier text of a cell doesn't have its id.
func TestOwnIDs(t *testing.T) {
	text, err := notebookText("u.ipynb", []Cell{ran("a", 1, 1, 4), {ID: "x", Source: "b"}, ran("c", 2, 3, 2), {ID: "x", Source: "d"}})
	if err != nil {
		t.Fatal(err)
	}
	nb, err := nbformat.Parse("u.ipynb", text)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"session-1", "session-2", "session-3", "x"} {
		if got := nb.Cells[i].ID; got != want {
			t.Errorf("cell %d: id %q, want %q", i+1, got, want)
		}
	}
}
