package cell

import (
	"strings"

	"gonbatch/internal/lastexpr"
)

// The marks around the expression whose value a cell shows. The first calls a function of the session's module; the second is a
// comment, so that a program can tell where the expression ends and take both marks out again.
const (
	ShowOpen  = "gonbatch__show("
	ShowClose = ")/*gonbatch__*/"
	// bareOpen begins the program of a cell that has no main.
	bareOpen = "func main() { flag.Parse(); "
)

// ShowValue makes a cell show the value of the expression that it ends in. The cell keeps its lines. It returns the cell as it was if
// there is none. Of a call of something that void reports to have no value, nothing is shown. callee is the text of what is called.
func ShowValue(code string, void func(callee string) bool) (shown, callee string, ok bool) {
	lines := strings.Split(code, "\n")
	if goesElsewhere(lines) {
		return code, "", false
	}
	source, starts := alignedSource(lines)
	last, ok := lastexpr.Find(source)
	open, end := ShowOpen, ShowClose
	switch isVoid := ok && last.Call && void(last.Callee); {
	case !ok, isVoid && !last.Bare:
		return code, "", false
	case isVoid:
		open, end = bareOpen, " }"
	case last.Bare:
		open, end = bareOpen+open, end+" }"
	}
	insert(lines, starts, last.End, end)
	insert(lines, starts, last.Start, open)
	return strings.Join(lines, "\n"), last.Callee, true
}

// CleanMarks takes what ShowValue put into a cell out of a text that quotes the cell, and moves the caret under a quoted line.
func CleanMarks(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		at := strings.Index(line, ShowOpen)
		lines[i] = marks.Replace(line)
		if at < 0 || i+1 == len(lines) || strings.TrimLeft(lines[i+1], " \t") != "^" {
			continue
		}
		if surplus := len(line) - len(strings.NewReplacer(bareOpen+ShowOpen, "", ShowOpen, "").Replace(line)); len(lines[i+1]) > surplus {
			lines[i+1] = lines[i+1][surplus:]
		}
	}
	return strings.Join(lines, "\n")
}

// marks are what ShowValue puts into a cell, and the go command's wrapper into its main.
var marks = strings.NewReplacer(bareOpen+ShowOpen, "", ShowClose+" }", "", ShowOpen, "", ShowClose, "", " defer gonbatch__save();", "")

// goesElsewhere reports whether the cell's Go is not a program of its own that prints to the notebook.
func goesElsewhere(lines []string) bool {
	if isProgram(lines[0]) {
		return true
	}
	for _, line := range lines {
		switch firstWord(line) {
		case "%test", "%wasm", "%exec":
			return true
		}
	}
	return false
}

// Source is the Go file that a cell makes: line i of the cell is line i+1 of the file, at the same columns. Magics and commands are empty
// lines; what cannot be read stays as it is.
func Source(code string) string {
	lines := strings.Split(code, "\n")
	if isProgram(lines[0]) {
		return "package main\n" + strings.Repeat("\n", len(lines))
	}
	source, _ := alignedSource(lines)
	return source
}

// alignedSource is the Go file that a cell makes, with a line for each of the cell's: line i of the cell begins at starts[i].
func alignedSource(lines []string) (source string, starts []int) {
	var text strings.Builder
	text.WriteString("package main\n")
	inMain := false
	for i := 0; i < len(lines); i++ {
		line := trim(lines[i])
		starts = append(starts, text.Len())
		switch {
		case opensMain(line) && !inMain:
			text.WriteString("func main() {\n")
			inMain = true
		case len(line) > 1 && (line[0] == '%' || line[0] == '!'):
			text.WriteString("\n")
			for end := lastLine(lines, i); i < end; i++ {
				starts = append(starts, text.Len())
				text.WriteString("\n")
			}
		case strings.HasPrefix(line, "package "):
			text.WriteString("\n")
		default:
			text.WriteString(lines[i] + "\n")
		}
	}
	if inMain {
		text.WriteString("}\n")
	}
	return text.String(), starts
}

// HasMain reports whether a cell is a program: it has a main, or ends in a bare expression, which becomes one.
func HasMain(code string) bool {
	lines := strings.Split(code, "\n")
	if isProgram(lines[0]) {
		return false
	}
	for _, line := range lines {
		if opensMain(line) || firstWord(line) == "%exec" || strings.HasPrefix(line, "func main()") {
			return true
		}
	}
	source, _ := alignedSource(lines)
	last, ok := lastexpr.Find(source)
	return ok && last.Bare
}

// opensMain reports whether a line is the one after which the cell's main begins.
func opensMain(line string) bool {
	word := firstWord(line)
	return word == "%%" || word == "%main"
}

// insert puts text into the line that has the offset of the aligned source.
func insert(lines []string, starts []int, offset int, text string) {
	i := len(starts) - 1
	for starts[i] > offset {
		i--
	}
	column := offset - starts[i]
	lines[i] = lines[i][:column] + text + lines[i][column:]
}
