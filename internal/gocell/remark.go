package gocell

import (
	"fmt"
	"go/scanner"
	"go/token"
	"slices"
	"strings"
)

// gone stands in a File for a line that GoNB drops from a raw string. No cell has such a line.
const gone = "\x01"

// WithoutGone removes from a part of a File's text the lines that GoNB drops from raw strings.
func WithoutGone(text string) string { return strings.ReplaceAll(text, gone+"\n", "") }

// The texts that can contain a whole line of a cell.
const (
	rawString = "a string"
	comment   = "a comment"
)

// insides returns what each line of the cell that is not Go is inside of, by index: a raw string or
// a comment.
func (c Cell) insides() map[int]string {
	inside := map[int]string{}
	if c.Program != nil {
		return inside
	}
	for t := range Tokens(strings.Join(c.GoLines(), "\n"), scanner.ScanComments) {
		what := rawString
		switch t.Kind {
		case token.COMMENT:
			what = comment
		case token.STRING:
		default:
			continue
		}
		for i := t.Line; i < t.Line+strings.Count(t.Text, "\n") && i < len(c.Lines); i++ {
			if c.Kinds[i] != GoLine {
				inside[i] = what
			}
		}
	}
	return inside
}

// Gone returns the indices of the lines that GoNB drops from the cell's raw strings.
func (c Cell) Gone() (indices []int) {
	inside := c.insides()
	for i := range c.Lines {
		if inside[i] == rawString {
			indices = append(indices, i)
		}
	}
	return indices
}

// startsMain reports whether a call begins a main.
func (c Call) startsMain() bool {
	return c.Name() == "%%" || c.Name() == "%main" || c.Name() == Exec
}

// CheckCall is call.Check for one of the cell's calls. It also refuses a main that begins inside a
// string or a comment, and arguments that the program doesn't get.
func (c Cell) CheckCall(call Call) error {
	err := call.check()
	where := c.insides()[call.Line-1]
	if err == nil && call.Name() == arguments {
		for _, later := range c.Calls {
			if later.Line > call.Line && (later.startsMain() || later.Name() == Test) {
				return fmt.Errorf("%s below has the program's arguments, and these are lost: write them after it, or move %s below it", later.Name(), arguments)
			}
		}
	}
	if where == "" || err == nil && !call.startsMain() {
		return err
	}
	return fmt.Errorf("inside %s, GoNB takes a line that begins with %s for a magic: indent the line%s", where, call.Name(), orQuote[where])
}

// orQuote is another way to keep a line in its text.
var orQuote = map[string]string{rawString: `, or write the string in double quotes, with \n between its lines`}

// Remark is about a line that GoNB reads in another way than its author may expect.
type Remark struct {
	// Line is the line, from 1.
	Line int
	// Message says what GoNB does, and how to prevent it.
	Message string
}

// Remarks returns the remarks about the cell's lines, in order.
func (c Cell) Remarks() []Remark {
	remarks := slices.Concat(c.taken(), c.untested(), c.idle())
	slices.SortStableFunc(remarks, func(a, b Remark) int { return a.Line - b.Line })
	return remarks
}

// taken finds the lines inside strings and comments that GoNB takes for magics, shell commands or
// package clauses.
func (c Cell) taken() (remarks []Remark) {
	inside := c.insides()
	for i, kind := range c.Kinds {
		where := inside[i]
		if where == "" || kind == JoinedLine || where == comment && kind != CallLine {
			continue
		}
		line := Trim(c.Lines[i])
		what := map[Kind]string{CallLine: "runs a line that begins with " + line[:1], PackageLine: `drops a line that begins with "package"`, MarkLine: "drops a line with only " + line[:1]}[kind]
		remarks = append(remarks, Remark{i + 1, fmt.Sprintf("GoNB %s, also inside %s%s: indent the line%s", what, where, dropped(where, kind), orQuote[where])})
	}
	return remarks
}

// untested finds the main of a cell that runs tests instead.
func (c Cell) untested() (remarks []Remark) {
	for _, call := range c.Calls {
		if c.Has(Test) && call.startsMain() {
			remarks = append(remarks, Remark{call.Line, fmt.Sprintf("the cell runs its tests, because it has a line %s, and not the main that %s begins: put them into two cells", Test, call.Name())})
		}
	}
	return remarks
}

// arguments is the magic that sets a program's arguments.
const arguments = "%args"

// idle finds the arguments of a cell without a program.
func (c Cell) idle() (remarks []Remark) {
	for _, call := range c.Calls {
		if call.Name() == arguments && c.FirstGo() < 0 && !c.Has(Exec) && !c.Has(Test) {
			remarks = append(remarks, Remark{call.Line, "these are for the next program, if it has a func main: write the arguments of one that %% begins below its %%"})
		}
	}
	return remarks
}

// dropped adds that a line that GoNB runs is not in its string either.
func dropped(where string, kind Kind) string {
	if where == rawString && kind == CallLine {
		return ", and drops it from the string"
	}
	return ""
}
