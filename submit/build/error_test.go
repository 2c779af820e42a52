package build

import (
	"errors"
	"testing"
)

// TestFurtherPlaces: a message about several places names the cells of all of them.
func TestFurtherPlaces(t *testing.T) {
	m, dir := written(t, cells("var a = b", "// b\nvar b = a\n%%\nprintln(a)"))
	_, err := Check(t.Context(), dir, m, Options{CacheDir: t.TempDir()})
	var mistakes *Error
	if !errors.As(err, &mistakes) || len(mistakes.Problems) != 1 {
		t.Fatalf("got %v, want one problem", err)
	}
	const want = "initialization cycle for a\n\tcell 1, line 1: a refers to b\n\tcell 2, line 2: b refers to a"
	if got := mistakes.Problems[0].Message; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
