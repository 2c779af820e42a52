package cell

import (
	"errors"
	"go/parser"
	"go/scanner"
	"go/token"
	"strings"

	"gonbatch/internal/lastexpr"
)

// Status is how far a cell is written, in the words of Jupyter's protocol.
type Status string

// The states of a cell.
const (
	Complete   Status = "complete"
	Incomplete Status = "incomplete"
	Invalid    Status = "invalid"
)

// Check says whether a cell can be executed as it stands and, for an incomplete one, how its next line is indented.
func Check(code string) (status Status, indent string) {
	lines := strings.Split(code, "\n")
	if isProgram(lines[0]) {
		return Complete, ""
	}
	source, inMain := goSource(lines)
	if at := lastexpr.BareStart(source); at >= 0 && !inMain {
		// An expression behind the declarations is complete when it would be as a variable's value.
		source = source[:at] + "var _ = " + source[at:]
	}
	if status = checkSource(source, inMain); status == Incomplete {
		indent = nextIndent(lines)
	}
	return status, indent
}

// goSource is the Go file that a cell makes. The body of an open func main is not closed.
func goSource(lines []string) (source string, inMain bool) {
	var text strings.Builder
	text.WriteString("package main\n")
	for i := 0; i < len(lines); i++ {
		line := trim(lines[i])
		first := firstWord(line)
		switch {
		case !inMain && (first == "%%" || first == "%main"):
			text.WriteString("func main() {\n")
			inMain = true
		case len(line) > 1 && (line[0] == '%' || line[0] == '!'):
			i = lastLine(lines, i)
		case strings.HasPrefix(line, "package "):
		default:
			text.WriteString(lines[i] + "\n")
		}
	}
	return text.String(), inMain
}

func checkSource(source string, inMain bool) Status {
	whole := source
	if inMain {
		whole += "}\n"
	}
	if parse(whole) == nil {
		return Complete
	}
	var found scanner.ErrorList
	if !errors.As(parse(source), &found) || len(found) == 0 {
		return Invalid // it is complete without the brace that closes main: there is one too many
	}
	first := found[0]
	atEnd := first.Pos.Offset >= len(strings.TrimRight(source, " \t\n"))
	open := strings.HasSuffix(first.Msg, "not terminated") && !strings.HasPrefix(first.Msg, "string") && !strings.HasPrefix(first.Msg, "rune")
	if atEnd || open {
		return Incomplete
	}
	return Invalid
}

func parse(source string) error {
	_, err := parser.ParseFile(token.NewFileSet(), "cell.go", source, parser.AllErrors|parser.SkipObjectResolution)
	return err
}

// nextIndent is the indentation of the last line, one more after an opening bracket.
func nextIndent(lines []string) string {
	last := strings.TrimRight(lines[len(lines)-1], " \t")
	indent := last[:len(last)-len(strings.TrimLeft(last, " \t"))]
	if last != "" && strings.ContainsAny(last[len(last)-1:], "{([") {
		indent += "\t"
	}
	return indent
}
