package gocell

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"gonbatch/internal/nearest"
)

// Call is a magic or a shell command in a cell.
type Call struct {
	// Line and End are its first and last line, from 1.
	Line, End int
	// Mark is '%' or '!', and Text is the text after it, with its lines joined.
	Mark byte
	Text string
	// Words are the words of Text.
	Words []string
}

// newCall parses a magic or command whose lines are joined; the mark is the first character.
func newCall(line, end int, joined string) Call {
	if !isCall(joined) {
		return Call{}
	}
	text := strings.TrimLeft(joined[1:], " \t")
	return Call{Line: line, End: end, Mark: joined[0], Text: text, Words: split(text)}
}

// Name returns the name in the table: "%keep", "%%", "!*".
func (c Call) Name() string {
	switch {
	case c.Mark == '!' && strings.HasPrefix(c.Text, "*"):
		return ShellInModule
	case c.Mark == '!':
		return Shell
	case len(c.Words) == 0:
		return "%"
	}
	return "%" + c.Words[0]
}

// Args returns the words after the name.
func (c Call) Args() []string {
	if len(c.Words) < 2 {
		return nil
	}
	return c.Words[1:]
}

// Rest returns the text after the name, unparsed.
func (c Call) Rest() string {
	if c.Mark == '!' {
		return strings.TrimPrefix(c.Text, "*")
	}
	if i := strings.IndexAny(c.Text, " \t"); i >= 0 {
		return strings.TrimSpace(c.Text[i:])
	}
	return ""
}

// Magic returns the call's row in the table; nil if the magic is unknown.
func (c Call) Magic() *Magic { return Lookup(c.Name()) }

// takesCell reports whether the magic takes the whole cell.
func (c Call) takesCell() bool {
	m := c.Magic()
	return m != nil && m.WholeCell
}

// check returns an error if the magic is unknown, is in a place where it has no effect, or lacks
// the name of a function to call. It is for the calls in Cell.Calls.
func (c Call) check() error {
	switch name := c.Name(); {
	case c.Magic() == nil:
		return fmt.Errorf("unknown magic %s: %s", name, hint(name))
	case c.takesCell():
		return fmt.Errorf("%s must be the first line of its cell", name)
	case name == Exec && len(c.Args()) == 0:
		return fmt.Errorf("%s needs the name of the function to run: %s", name, c.Magic().Usage)
	case name == Test:
		return c.checkTestFlags()
	}
	return nil
}

// testFlags are the flags of go test that the compiled test program knows under another name.
var testFlags = []string{"run", "v", "bench", "benchmem", "benchtime", "count", "cpu", "failfast", "list", "parallel", "short", "shuffle", "skip", "timeout"}

// checkTestFlags returns an error for a flag of go test.
func (c Call) checkTestFlags() error {
	for _, word := range c.Args() {
		name, _, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
		if strings.HasPrefix(word, "-") && slices.Contains(testFlags, name) {
			return fmt.Errorf("%s %s: the tests know it as -test.%s", Test, word, name)
		}
	}
	return nil
}

// foreign are magics of other kernels, and their equivalents here.
var foreign = map[string]string{
	"%%python": "this is a kernel for Go: %%script python3 runs a cell by another program", "%pip": "run the command by !pip", "%conda": "run the command by !conda",
}

// hint says what is wrong with an unknown name, or suggests the magics that it may mean.
func hint(name string) string {
	if text := foreign[name]; text != "" {
		return text
	}
	if i := strings.IndexFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }); i >= 0 {
		invisible, _ := utf8.DecodeRuneInString(name[i:])
		return fmt.Sprintf("it has an invisible character, %U: delete it, or replace it with a space", invisible)
	}
	var known []string
	for _, m := range Magics {
		if rest, ok := strings.CutPrefix(m.Name, "%"); ok {
			known = append(known, rest)
		}
	}
	if near := nearest.Words(name[1:], known); len(near) > 0 {
		return "did you mean %" + strings.Join(near, " or %") + "?"
	}
	return Help + " lists them"
}
