package export

import (
	"bytes"
	"errors"
	"go/format"
	"slices"
	"strings"
	"testing"

	"gonbatch/internal/nbformat"
	"gonbatch/submit/export/nbcell"
)

// FuzzNotebook exports notebooks of several cells. A NUL divides the cells, and a leading "#" makes
// a cell Markdown. Programs are formatted and the same each time, and each of their Go lines comes
// from a cell.
func FuzzNotebook(f *testing.F) {
	for _, name := range []string{"comments", "tuple", "iota", "magics", "methods", "redefine", "shells", "tags", "inits"} {
		var all []string
		for _, cell := range read(f, name).Cells {
			all = append(all, cell.Source)
		}
		f.Add(strings.Join(all, "\x00"))
	}
	f.Add("type T struct{}\n\nfunc (t T) A() {}\x00# Heading\x00type T int\x00%rm T\n%%\nprintln(1)\x00!ls\x00%reset\n%%\n")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<14 {
			return // Long notebooks find no more mistakes than short ones, and take longer.
		}
		sources := strings.Split(text, "\x00")
		module, err := FromNotebook(fuzzNotebook(sources), Options{SourceDir: sourceDir(t)})
		again, errAgain := FromNotebook(fuzzNotebook(sources), Options{SourceDir: sourceDir(t)})
		if err != nil {
			checkRefusal(t, err, errAgain)
			return
		}
		if !slices.Equal(module.FileNames(), again.FileNames()) {
			t.Fatalf("files %q, then %q", module.FileNames(), again.FileNames())
		}
		for name, data := range module.Files {
			if !bytes.Equal(data, again.Files[name]) {
				t.Errorf("%s is another the second time:\n%s\n%s", name, data, again.Files[name])
			}
			if !strings.HasSuffix(name, ".go") {
				continue
			}
			if _, err := format.Source(data); err != nil {
				t.Errorf("%s does not parse: %v\n%s", name, err, data)
			}
		}
		checkLines(t, module)
	})
}

// checkRefusal checks that an error names a mistake in a cell, in the same words each time.
func checkRefusal(t *testing.T, err, again error) {
	t.Helper()
	if again == nil || err.Error() != again.Error() {
		t.Errorf("refused by %q, then by %v", err, again)
	}
	var mistake *nbcell.Error
	if errors.As(err, &mistake) && (strings.Contains(err.Error(), "please report") || strings.Contains(err.Error(), "do not fit together")) {
		t.Error(err)
	}
}

// fuzzNotebook returns a notebook of cells; "#" begins a Markdown cell.
func fuzzNotebook(sources []string) *nbformat.Notebook {
	nb := cells(sources...)
	for _, cell := range nb.Cells {
		if strings.HasPrefix(cell.Source, "#") {
			cell.Type = nbformat.Markdown
		}
	}
	return nb
}
