package cell

import (
	"fmt"
	"slices"
	"strings"

	"al.essio.dev/pkg/shellescape"

	"gonbatch/internal/gocell"
)

// Magic is a magic that the submit command runs.
type Magic struct {
	// Line is its line, from 1.
	Line int
	// Name is its name without the first %, Args the rest of its line, Body the rest of the cell
	// for one that takes it.
	Name, Args, Body string
}

// Prepared is a cell that is ready to be executed.
type Prepared struct {
	// Code is what GoNB executes: as many lines as the cell has.
	Code string
	// AllowFail is set if commands may fail.
	AllowFail bool
	// Commands are the lines, from 1, of the shell commands that are wrapped in the program status.
	Commands []int
	// Password is set if what the user types must not be seen.
	Password bool
	// Time is set if the kernel prints how long the cell takes.
	Time bool
	// Ranks is how many ranks of a program run; 0 is an ordinary cell.
	Ranks int
	// Reset is set if the session forgets its declarations, Removed are those that it forgets one
	// by one, and Keep are the changes of which variables are kept, in order, after that.
	Reset   bool
	Removed []string
	Keep    []gocell.Kept
	// Env are the names of the variables that %env sets.
	Env []string
	// Magics are those that the submit command runs, in order. Their lines are empty in Code.
	Magics []Magic
	// Err is set if the cell has a mistake in a magic: then nothing of it runs.
	Err error
}

// preparer prepares a cell.
type preparer struct {
	Prepared
	status string
	lines  []string
	file   gocell.File
	hasGo  bool
	// keepLine is the line of the last %keep.
	keepLine int
}

// Prepare wraps the shell commands of a cell in the program status, which is called as STATUS LINE
// COMMAND...
func Prepare(code, status string) Prepared {
	c := gocell.Parse(code)
	p := preparer{lines: slices.Clone(c.Lines), status: status, file: c.File(), hasGo: c.FirstGo() >= 0}
	if c.Program != nil {
		p.program(c)
	}
	for i, kind := range c.Kinds {
		if kind == gocell.MarkLine {
			p.lines[i] = "" // It would end GoNB.
		}
	}
	for _, call := range c.Calls {
		if err := p.call(call); err != nil {
			p.Err = fmt.Errorf("line %d: %w", call.Line, err)
			break
		}
	}
	p.buildKept()
	p.Code = strings.Join(p.lines, "\n")
	return p.Prepared
}

// buildKept gives a cell a program that only keeps variables: whether they can be is known when it
// is built.
func (p *preparer) buildKept() {
	adds := slices.ContainsFunc(p.Keep, func(k gocell.Kept) bool { return !k.Drop && len(k.Names) > 0 })
	if adds && p.Err == nil && !p.hasGo && len(p.file.Mains) == 0 && !slices.ContainsFunc(p.lines, func(line string) bool { return strings.HasPrefix(line, "func main()") }) {
		p.lines[p.keepLine-1] = bareOpen + "}"
	}
}

// program prepares a cell whose magic takes all of it.
func (p *preparer) program(c gocell.Cell) {
	rest := c.Program.Rest()
	switch name := c.Program.Name(); {
	case name == gocell.SubmitCell:
		p.Magics = []Magic{{1, name[1:], rest, c.Body()}}
		clear(p.lines)
	case name == "%%script" && rest != "":
		p.script(rest)
	case (name == "%%bash" || name == "%%sh") && rest == "":
		p.script(name[2:])
	default:
		p.lines[0] = string(c.Program.Mark) + c.Program.Text
	}
}

// script runs the cell by a command. GoNB splits the line at spaces outside double quotes.
func (p *preparer) script(command string) {
	p.lines[0] = fmt.Sprintf(`%%%%script "%s" 0 %s`, p.status, command)
	p.Commands = []int{1}
}

// call prepares one magic or shell command.
func (p *preparer) call(call gocell.Call) error {
	if err := call.Check(); err != nil {
		return err
	}
	text := ""
	switch m := call.Magic(); {
	case m.Runner == gocell.Submit:
		p.Magics = append(p.Magics, Magic{Line: call.Line, Name: m.Name[1:], Args: call.Rest()})
	case rewriters[m.Name] != nil:
		var err error
		if text, err = rewriters[m.Name](p, call); err != nil {
			p.lines[call.Line-1] = ""
			return err
		}
	default:
		p.Reset = p.Reset || m.Name == gocell.Reset && len(call.Args()) == 0
		if m.Name == "%rm" || m.Name == "%remove" {
			p.Removed = append(p.Removed, call.Args()...)
		}
		text = strings.TrimSpace(m.Name + " " + call.Rest())
		if m.Name == gocell.Exec && !p.hasGo {
			text = execAlone(call.Args())
		}
	}
	// GoNB sees a magic as one line.
	clear(p.lines[call.Line-1 : call.End])
	p.lines[call.Line-1] = text
	return nil
}

// execAlone is the program of an %exec in a cell without Go, where GoNB would run nothing. The last
// semicolon keeps the call from being the cell's value.
func execAlone(args []string) string {
	return fmt.Sprintf("func main() { os.Args = append(os.Args[:1], %#v...); flag.Parse(); %s(); }", args[1:], args[0])
}

// command wraps a shell command.
func command(p *preparer, call gocell.Call) (string, error) {
	text := strings.TrimLeft(call.Rest(), " \t")
	if text == "" {
		return "", nil
	}
	p.Commands = append(p.Commands, call.Line)
	return fmt.Sprintf("%s%s %d /bin/bash -c %s", call.Name(), shellescape.Quote(p.status), call.Line, shellescape.Quote(text)), nil
}
