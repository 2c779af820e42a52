package build

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"gonbatch/internal/gocell"
	"gonbatch/submit/export"
	"gonbatch/submit/export/nbcell"
)

// Error is the error of a notebook that does not compile.
type Error struct {
	// Notebook is the notebook's file name.
	Notebook string
	// Problems are the compiler's messages about cells, in its order.
	Problems []Problem
	// Output is the go command's whole output.
	Output string
	// Err is how the go command ended.
	Err error
}

// Problem is one mistake in a cell. Its message is the compiler's, or a clearer one with the fix.
type Problem nbcell.Error

// Error lists the problems, each with its line in the cell.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s does not compile", e.Notebook)
	if len(e.Problems) == 0 {
		fmt.Fprintf(&b, ": %v\n%s", e.Err, e.Output)
	}
	for _, p := range e.Problems {
		b.WriteString("\n" + p.String())
	}
	return b.String()
}

// Unwrap returns how the go command ended.
func (e *Error) Unwrap() error { return e.Err }

// String names the place, and quotes the line with a mark under the column.
func (p Problem) String() string {
	text := p.Ref.String()
	if p.Line > 0 {
		text += fmt.Sprintf(", line %d", p.Line)
	}
	if p.Col > 0 {
		text += fmt.Sprintf(", column %d", p.Col)
	}
	text += ": " + p.Message
	if strings.TrimSpace(p.SourceLine) == "" {
		return text
	}
	line, col := nbcell.Excerpt(p.SourceLine, p.Col)
	text += "\n\t" + line
	if p.Col > 0 && p.Col <= len(p.SourceLine)+1 {
		text += "\n\t" + blank(line[:col-1]) + "^"
	}
	return text
}

// blank returns blanks as wide as s: tabs stay, every other character becomes a space.
func blank(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\t' {
			return r
		}
		return ' '
	}, s)
}

// newError returns the error that the go command's output describes.
func newError(m *export.Module, output []byte, err error) error {
	e := &Error{Notebook: m.Notebook, Output: strings.TrimSpace(string(output)), Err: err}
	if strings.Contains(e.Output, "C compiler") && strings.Contains(e.Output, "not found") {
		return fmt.Errorf("build %s: no C compiler found, and programs with XLA or MPI need one; install gcc, or set CC\n%s", m.Notebook, e.Output)
	}
	lines := strings.Split(e.Output, "\n")
	for i := 0; i < len(lines); i++ {
		message := lines[i]
		for i+1 < len(lines) && strings.HasPrefix(lines[i+1], "\t") {
			i++
			message += "\n" + lines[i]
		}
		p, ok := cellProblem(m, message)
		if !ok {
			p, ok = importProblem(m, message)
		}
		if ok && !slices.Contains(e.Problems, p) {
			e.Problems = append(e.Problems, p)
		}
	}
	return e
}

// place matches the text after a file name in a compiler's message.
var place = regexp.MustCompile(`^:(\d+)(?::(\d+))?: (?s)(.*)$`)

// cellProblem parses a message whose position is in a cell.
func cellProblem(m *export.Module, message string) (p Problem, ok bool) {
	for file, cell := range m.Sources {
		i := strings.Index(message, file+":")
		if i < 0 || i > 0 && message[i-1] != '/' {
			continue
		}
		found := place.FindStringSubmatch(message[i+len(file):])
		if found == nil {
			continue
		}
		p = Problem{Ref: cell.Ref, Message: namePlaces(m, gocell.PlainExit(found[3]))}
		p.Message += declaredElsewhere(m, cell.Ref, p.Message)
		p.Line, _ = strconv.Atoi(found[1])
		col, _ := strconv.Atoi(found[2])
		if lines := strings.Split(gocell.PlainLines(cell.Source), "\n"); p.Line >= 1 && p.Line <= len(lines) {
			p.SourceLine = lines[p.Line-1]
			p.Col = cellColumn(m, file, p.Line, col, p.SourceLine)
			p.Message += keepAdvice(p.SourceLine)
		}
		return p, true
	}
	return p, false
}

// namePlaces replaces the further places in a message, and those in the module behind them, with
// the cells and their lines.
func namePlaces(m *export.Module, message string) string {
	for _, file := range slices.Sorted(maps.Keys(m.Sources)) {
		further := regexp.MustCompile(regexp.QuoteMeta(file) + `:(\d+)(:\d+)?(\[[^\]\n]*\])?`)
		message = further.ReplaceAllString(message, "cell "+m.Sources[file].Label()+", line $1")
	}
	return message
}

// keepAdvice returns the advice to add to a message about a line with %keep.
func keepAdvice(sourceLine string) string {
	if strings.HasPrefix(strings.TrimSpace(sourceLine), gocell.Keep) {
		return ": only package-level variables can be kept: declare it outside of main, as var NAME TYPE"
	}
	return ""
}

// cellColumn converts a column of the gofmt-ed program to the cell's; 0 if unknown.
func cellColumn(m *export.Module, file string, line, col int, sourceLine string) int {
	trimmed := strings.TrimLeft(sourceLine, " \t")
	for _, cell := range m.Programs() {
		text := programLine(string(m.Files[cell.Source()]), file, line, trimmed)
		if text == "" {
			continue
		}
		indent := len(text) - len(strings.TrimLeft(text, " \t"))
		at := col - indent + len(sourceLine) - len(trimmed)
		if at >= 1 && at <= len(sourceLine)+1 && (at > len(sourceLine) || utf8.RuneStart(sourceLine[at-1])) {
			return at
		}
	}
	return 0
}

// directive matches a //line directive of an exported program.
var directive = regexp.MustCompile(`^//line (.*):(\d+):\d+$`)

// programLine returns the line of a program that maps to a cell's line and has the same text.
func programLine(program, file string, line int, trimmed string) string {
	current, at := "", 0
	for text := range strings.Lines(program) {
		text = strings.TrimRight(text, "\n")
		if found := directive.FindStringSubmatch(text); found != nil {
			current = found[1]
			at, _ = strconv.Atoi(found[2])
			continue
		}
		if current == file && at == line && strings.TrimSpace(gocell.PlainExit(text)) == strings.TrimSpace(trimmed) {
			return text
		}
		at++
	}
	return ""
}

// importProblem parses a message about an import path in a cell.
func importProblem(m *export.Module, message string) (p Problem, ok bool) {
	for _, path := range slices.Sorted(maps.Keys(m.ImportSites)) {
		site := m.ImportSites[path]
		if mentions(message, path) {
			return Problem{Ref: site.Ref, Line: site.Line, Message: importMessage(path, message), SourceLine: m.SourceLine(site)}, true
		}
	}
	return p, false
}

// mentions reports whether a message contains an import path as a whole word.
func mentions(message, path string) bool {
	return slices.Contains(strings.FieldsFunc(message, func(r rune) bool {
		return strings.ContainsRune(" \t\n\";:,()", r)
	}), path)
}

// importMessage describes what is wrong with an import and how to fix it.
func importMessage(path, message string) string {
	switch {
	case strings.Contains(message, "imported and not used"):
		return fmt.Sprintf("%q is imported and not used", path)
	case strings.Contains(message, "is not in std"), strings.HasPrefix(path, "gonbatch/"):
		return fmt.Sprintf("there is no package %q; check the import path", path)
	case strings.Contains(message, "no required module provides"), strings.Contains(message, "cannot find module"),
		strings.Contains(message, "missing go.sum entry"):
		return fmt.Sprintf("no module that gonbatch brings has the package %q; add its module to the notebook with a line: !*go get %s@VERSION", path, path)
	}
	_, text, ok := strings.Cut(message, ": ")
	if !ok {
		return message
	}
	return text
}
