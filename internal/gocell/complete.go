package gocell

import (
	"errors"
	"go/parser"
	"go/scanner"
	"go/token"
	"strings"
)

// Status is how complete a cell is, in the terms of Jupyter's protocol.
type Status string

// The states of a cell.
const (
	Complete   Status = "complete"
	Incomplete Status = "incomplete"
	Invalid    Status = "invalid"
)

// Check reports whether a cell can be executed and, for an incomplete cell, how to indent its next
// line.
func Check(code string) (status Status, indent string) {
	c := Parse(code)
	if c.Program != nil {
		return Complete, ""
	}
	f := c.File()
	source := strings.TrimSuffix(f.Text(), f.Tail)
	if at := BareStart(source); at >= 0 && f.Tail == "" {
		// An expression after the declarations is complete if it would be as a variable's value.
		source = source[:at] + "var _ = " + source[at:]
	}
	if status = checkSource(source, f.Tail); status == Incomplete {
		indent = nextIndent(c.Lines)
	}
	return status, indent
}

// checkSource checks a file; tail closes its main.
func checkSource(source, tail string) Status {
	if parse(source+tail) == nil {
		return Complete
	}
	var found scanner.ErrorList
	if !errors.As(parse(source), &found) || len(found) == 0 {
		return Invalid // the source is complete without the brace that closes main: there is one too many
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

// nextIndent returns the indentation of the last line, plus one tab after an opening bracket.
func nextIndent(lines []string) string {
	last := strings.TrimRight(lines[len(lines)-1], " \t")
	indent := last[:len(last)-len(strings.TrimLeft(last, " \t"))]
	if last != "" && strings.ContainsAny(last[len(last)-1:], "{([") {
		indent += "\t"
	}
	return indent
}
