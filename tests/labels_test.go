package tests

import (
	"path/filepath"
	"strings"
	"testing"

	"gonbatch/internal/nbformat"
)

// TestPlotsHaveLabels: a cell of our notebooks that makes a plot gives it a title, and labels for
// its axes, unless it hides them or their values are words.
func TestPlotsHaveLabels(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob(filepath.Join(filepath.Dir(mnist(t)), "*.ipynb"))
	ok(t, err)
	plots := 0
	for _, path := range paths {
		notebook, err := nbformat.Read(path)
		ok(t, err)
		for i, cell := range notebook.Cells {
			if cell.Type != nbformat.Code || !strings.Contains(cell.Source, "plot.New()") {
				continue
			}
			plots++
			for _, part := range [][]string{{"Title.Text"}, {"X.Label.Text", "HideX()"}, {"Y.Label.Text", "HideY()", "NominalY("}} {
				if !containsAny(cell.Source, part) {
					t.Errorf("%s, cell %d: its plot has no %s", filepath.Base(path), i+1, part[0])
				}
			}
		}
	}
	if plots < 8 {
		t.Errorf("%d cells make plots, want at least 8: the test doesn't find them", plots)
	}
}

func containsAny(text string, parts []string) bool {
	for _, part := range parts {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}
