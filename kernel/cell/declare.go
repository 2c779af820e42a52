package cell

import (
	"fmt"
	"strings"

	"gonbatch/internal/gocell"
	"gonbatch/internal/plural"
)

// Declare replaces a magic in a line (from 1) of a prepared cell with a package-level declaration,
// and adds its imports ("NAME PATH", as in Go) before the cell's own Go. The cell keeps its lines.
func Declare(code string, line int, imported, declaration string) (string, error) {
	c := gocell.Parse(code)
	if line < 1 || line > len(c.Lines) {
		return code, fmt.Errorf("line %d: the cell has %s", line, plural.Of(len(c.Lines), "line"))
	}
	if f := c.File(); f.Tail != "" && f.Mains[0] < line {
		main := f.Mains[0]
		return code, fmt.Errorf("line %d: it declares a variable, which can't be done within main: put it before line %d, %s", line, main, c.Lines[main-1])
	}
	c.Lines[line-1] = declaration + c.Lines[line-1]
	first := gocell.Parse(strings.Join(c.Lines, "\n")).FirstGo()
	c.Lines[first] = "import " + imported + "; " + c.Lines[first]
	return strings.Join(c.Lines, "\n"), nil
}
