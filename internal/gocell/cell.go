package gocell

import (
	"slices"
	"strings"
)

// goPrefix may precede a magic, so that Go tools treat its line as a comment.
const goPrefix = "//gonb:"

// Kind is the kind of a line in a cell.
type Kind int

// The kinds of lines.
const (
	// GoLine is Go, a comment, or empty.
	GoLine Kind = iota
	// CallLine begins a magic or a shell command.
	CallLine
	// JoinedLine belongs to the magic or command above it, whose line ends in a backslash.
	JoinedLine
	// PackageLine begins with "package". GoNB drops it.
	PackageLine
	// MarkLine has only a mark and spaces. It does nothing.
	MarkLine
	// BodyLine belongs to the text that a magic such as %%bash takes.
	BodyLine
)

// Cell is a parsed cell.
type Cell struct {
	// Lines are the cell's lines, without carriage returns, and Kinds the kind of each line.
	Lines []string
	Kinds []Kind
	// Program is the magic that takes the whole cell; nil for a Go cell.
	Program *Call
	// Calls are the magics and shell commands of a Go cell, in order.
	Calls []Call
}

// Parse parses a cell.
func Parse(source string) Cell {
	c := Cell{Lines: strings.Split(PlainLines(source), "\n")}
	c.Kinds = make([]Kind, len(c.Lines))
	if first := newCall(1, 1, Trim(c.Lines[0])); first.takesCell() {
		c.Program, c.Kinds[0] = &first, CallLine
		for i := 1; i < len(c.Kinds); i++ {
			c.Kinds[i] = BodyLine
		}
		return c
	}
	for i := 0; i < len(c.Lines); {
		i = c.read(i)
	}
	return c
}

// PlainLines replaces Windows line endings, which editors other than Jupyter write, and removes a
// byte order mark.
func PlainLines(source string) string {
	return strings.ReplaceAll(strings.TrimPrefix(source, "\ufeff"), "\r\n", "\n")
}

// read determines the kind of line i and returns the index of the line after it and the lines
// joined to it.
func (c *Cell) read(i int) (next int) {
	if !isCall(Trim(c.Lines[i])) {
		if strings.HasPrefix(c.Lines[i], "package") {
			c.Kinds[i] = PackageLine
		}
		return i + 1
	}
	text, next := c.joined(i)
	first, rest := CallLine, JoinedLine
	if call := newCall(i+1, next, text); call.Text != "" {
		c.Calls = append(c.Calls, call)
	} else {
		first, rest = MarkLine, MarkLine
	}
	for j := i; j < next; j++ {
		c.Kinds[j] = rest
	}
	c.Kinds[i] = first
	return next
}

// isCall reports whether a line is a magic or a shell command. A mark alone is not.
func isCall(line string) bool { return len(line) > 1 && (line[0] == '%' || line[0] == '!') }

// joined returns line i with the lines that its backslashes join to it, and the index of the line
// after them.
func (c *Cell) joined(i int) (text string, next int) {
	for ; i < len(c.Lines); i++ {
		text += Trim(c.Lines[i])
		if !strings.HasSuffix(text, `\`) {
			return text, i + 1
		}
		text = strings.TrimSuffix(text, `\`) + " "
	}
	return text, i
}

// Trim removes the prefix that hides a magic from Go tools.
func Trim(line string) string { return strings.TrimPrefix(line, goPrefix) }

// Has reports whether one of the cell's magics has the name.
func (c Cell) Has(name string) bool {
	return slices.ContainsFunc(c.Calls, func(call Call) bool { return call.Name() == name })
}

// GoLines returns the cell's lines, with every line that is not Go emptied.
func (c Cell) GoLines() []string {
	lines := make([]string, len(c.Lines))
	for i, line := range c.Lines {
		if c.Kinds[i] == GoLine {
			lines[i] = line
		}
	}
	return lines
}

// FirstGo returns the index of the first Go line that is not empty, or -1.
func (c Cell) FirstGo() int {
	return slices.IndexFunc(c.GoLines(), func(line string) bool { return strings.TrimSpace(line) != "" })
}

// Body returns the text that the magic Program takes.
func (c Cell) Body() string { return strings.Join(c.Lines[1:], "\n") }
