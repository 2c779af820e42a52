package cell

import (
	"strings"

	"gonbatch/internal/gocell"
)

// The marks around the expression whose value a cell shows. The first calls a function of the
// session's module; the second is a comment, so that a program can find the end of the expression
// and remove both marks.
const (
	ShowOpen  = "gonbatch__show("
	ShowClose = ")/*gonbatch__*/"
	// bareOpen begins the program of a cell without a main.
	bareOpen = "func main() { flag.Parse(); "
)

// ShowValue makes a cell show the value of its last expression. The cell keeps its lines. If there
// is no such expression, ShowValue returns the cell unchanged. void reports whether a function has
// no value; a call of such a function shows nothing. callee is the text of the called function.
func ShowValue(code string, void func(callee string) bool) (shown, callee string, ok bool) {
	c := gocell.Parse(code)
	if goesElsewhere(c) {
		return code, "", false
	}
	f := c.File()
	last, ok := gocell.LastValue(f.Text())
	open, end := ShowOpen, ShowClose
	switch isVoid := ok && last.Call && void(last.Callee); {
	case !ok, isVoid && !last.Bare:
		return code, "", false
	case isVoid:
		open, end = bareOpen, " }"
	case last.Bare:
		open, end = bareOpen+open, end+" }"
	}
	apply(c.Lines, f, []edit{{last.Start, last.Start, open}, {last.End, last.End, end}})
	return strings.Join(c.Lines, "\n"), last.Callee, true
}

// CleanMarks removes the text that ShowValue and Prepare added from a message that quotes the cell,
// and moves the caret under a quoted line.
func CleanMarks(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = cleanLine(line)
		if lines[i] == line || i+1 == len(lines) || strings.TrimLeft(lines[i+1], " \t") != "^" {
			continue
		}
		caret := len(lines[i+1]) - 1
		before := line[:min(caret, len(line))]
		lines[i+1] = lines[i+1][min(len(before)-len(cleanLine(before)), caret):]
	}
	return strings.Join(lines, "\n")
}

func cleanLine(line string) string {
	return namedBlank.ReplaceAllString(marks.Replace(line), blank)
}

// marks removes what ShowValue adds to a cell, and what the go command's wrapper adds to its main.
var marks = strings.NewReplacer(bareOpen+ShowOpen, "", ShowClose+" }", "", ShowOpen, "", ShowClose, "", " defer gonbatch__begin()();", "", "os_Exit(", "os.Exit(")

// goesElsewhere reports whether the cell's Go is not an ordinary program that prints to the
// notebook.
func goesElsewhere(c gocell.Cell) bool {
	return c.Program != nil || c.Has(gocell.Test) || c.Has(gocell.Wasm) || c.Has(gocell.Exec)
}

// HasMain reports whether a cell is a program: it has a main or tests, or ends in a bare
// expression, which becomes a main.
func HasMain(code string) bool {
	c := gocell.Parse(code)
	f := c.File()
	last, ok := gocell.LastValue(f.Text())
	return f.HasMain() || c.Has(gocell.Test) || ok && last.Bare
}
