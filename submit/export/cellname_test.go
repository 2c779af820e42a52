package export

import (
	"slices"
	"testing"

	"gonbatch/internal/nbformat"
)

// TestNamesOfFolders: a name that the go command refuses for a package's folder, or treats in a
// special way, is no cell's.
func TestNamesOfFolders(t *testing.T) {
	for _, word := range []string{"aux", "CON", "nul", "com1", "LPT9", "vendor", "Internal", "testdata", "all", "std", "cmd", "v2", "_x"} {
		nb := cells("# "+word, "%%\nprintln(1)", "%%\nprintln(2)")
		nb.Cells[0].Type, nb.Cells[2].Tags = nbformat.Markdown, []string{word}
		m, err := FromNotebook(nb, Options{SourceDir: sourceDir(t)})
		if err != nil {
			t.Fatal(err)
		}
		want := []string{"cell-2", "cell-3"}
		if word == "_x" { // As a heading it is the word x.
			want = []string{"x", "x-2"}
		}
		if got := m.CellNames(); !slices.Equal(got, want) {
			t.Errorf("%s: the cells are %q, want %q", word, got, want)
		}
	}
}
