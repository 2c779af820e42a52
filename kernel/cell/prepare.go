package cell

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"al.essio.dev/pkg/shellescape"

	"gonbatch/internal/gocell"
	"gonbatch/internal/plural"
)

// Magic is a magic that the submit command runs.
type Magic struct {
	// Line is its line, from 1.
	Line int
	// Name is its name without the first %, Args the rest of its line, Body the rest of the cell if
	// the magic takes it.
	Name, Args, Body string
}

// Prepared is a cell that is ready to be executed.
type Prepared struct {
	// Code is the code for GoNB, with as many lines as the cell.
	Code string
	// AllowFail is set if commands may fail.
	AllowFail bool
	// Commands are the lines, from 1, of the shell commands that are wrapped in the program status.
	Commands []int
	// Password is set if the user's input must not be visible.
	Password bool
	// Time is set if the kernel prints how long the cell takes.
	Time bool
	// Ranks is the number of ranks to start; 0 for an ordinary cell.
	Ranks int
	// Reset is set if the session forgets all its declarations. Removed are declarations that it
	// forgets one by one. Keep lists, in order, the changes to the kept variables; they come last.
	Reset   bool
	Removed []string
	Keep    []gocell.Kept
	// Env are the names of the variables that %env sets.
	Env []string
	// Magics are the magics that the submit command runs, in order. Their lines are empty in Code.
	Magics []Magic
	// Notes are remarks about the cell, each with its line.
	Notes []string
	// Err is set if a magic of the cell has a mistake: then nothing in the cell runs.
	Err error
}

// preparer prepares a cell.
type preparer struct {
	Prepared
	// status is the program, id the cell's id.
	status, id string
	lines      []string
	file       gocell.File
	hasGo      bool
	// keepLine is the line of the last %keep.
	keepLine int
}

// Prepare wraps the shell commands of a cell in the program status, which is called as STATUS LINE
// COMMAND... The id distinguishes the cell from others; it may be empty.
func Prepare(code, status, id string) Prepared {
	c := gocell.Parse(code)
	p := preparer{id: id, lines: slices.Clone(c.Lines), status: status, file: c.File(), hasGo: c.FirstGo() >= 0}
	if c.Program != nil {
		p.program(c)
	}
	for i, kind := range c.Kinds {
		if kind == gocell.MarkLine {
			p.lines[i] = "" // It would end GoNB.
		}
	}
	for _, call := range c.Calls {
		if p.Err != nil {
			break
		}
		if err := p.call(c, call); err != nil {
			p.Err = fmt.Errorf("line %d: %w", call.Line, err)
			break
		}
	}
	p.checkMains(p.file)
	p.dropGone(c)
	for _, remark := range c.Remarks() {
		p.Notes = append(p.Notes, fmt.Sprintf("line %d: %s", remark.Line, remark.Message))
	}
	if err := p.editDeclarations(); p.Err == nil {
		p.Err = err
	}
	p.buildKept()
	p.Code = strings.Join(p.lines, "\n")
	p.checkMains(gocell.Parse(p.Code).File()) // with those of magics such as %timeit
	return p.Prepared
}

// checkMains refuses a second main: GoNB would die of it, or run only one of them.
func (p *preparer) checkMains(file gocell.File) {
	if line, err := file.CheckMains(); err != nil && p.Err == nil {
		p.Err = fmt.Errorf("line %d: %w", line, err)
	}
}

// dropGone makes GoNB drop a line from a raw string if it would drop the line that the user wrote.
func (p *preparer) dropGone(c gocell.Cell) {
	for _, i := range c.Gone() {
		if p.lines[i] == "" {
			p.lines[i] = "package"
		}
	}
}

// buildKept gives a cell without a program one that only keeps variables: only a build shows
// whether they can be kept.
func (p *preparer) buildKept() {
	adds := slices.ContainsFunc(p.Keep, func(k gocell.Kept) bool { return !k.Drop && len(k.Names) > 0 })
	if adds && p.Err == nil && !p.hasGo && len(p.file.Mains) == 0 && !slices.ContainsFunc(p.lines, func(line string) bool { return strings.HasPrefix(line, "func main()") }) {
		p.lines[p.keepLine-1] = bareOpen + "}"
	}
}

// programs prepare the cells whose magic takes the whole cell, other than as GoNB does.
var programs = map[string]func(p *preparer, c gocell.Cell){
	gocell.SubmitCell: (*preparer).submitCell,
	gocell.Script:     func(p *preparer, c gocell.Cell) { p.script(c.Program.Rest()) },
	gocell.Bash:       func(p *preparer, _ gocell.Cell) { p.script("bash") },
	gocell.Sh:         func(p *preparer, _ gocell.Cell) { p.script("sh") },
}

// program prepares a cell whose magic takes the whole cell.
func (p *preparer) program(c gocell.Cell) {
	magic, rest := c.Program.Magic(), c.Program.Rest()
	// GoNB refuses a script without a command, and a shell with arguments.
	refused := magic.Name == gocell.Script && rest == "" || (magic.Name == gocell.Bash || magic.Name == gocell.Sh) && rest != ""
	if prepare := programs[magic.Name]; prepare != nil && !refused {
		prepare(p, c)
		return
	}
	p.Err = checkLetters(magic, rest)
	p.lines[0] = string(c.Program.Mark) + c.Program.Text
}

// submitCell leaves a cell to the submit command.
func (p *preparer) submitCell(c gocell.Cell) {
	p.Magics = []Magic{{1, gocell.SubmitCell[1:], c.Program.Rest(), c.Body()}}
	clear(p.lines)
}

// checkLetters refuses arguments that GoNB would misread. Stream corrects those of programs.
func checkLetters(magic *gocell.Magic, rest string) error {
	i := strings.IndexFunc(rest, func(r rune) bool { return r > unicode.MaxASCII })
	if i < 0 || !magic.ASCII {
		return nil
	}
	letter, _ := utf8.DecodeRuneInString(rest[i:])
	return fmt.Errorf("%s %s: GoNB, which runs this magic, handles only ASCII letters, not %q: use a name without it, or Go code or a shell command instead of the magic", magic.Name, rest, letter)
}

// script runs the cell with a command. GoNB splits the line at spaces outside double quotes.
func (p *preparer) script(command string) {
	p.lines[0] = fmt.Sprintf(`%%%%script "%s" 0 %s`, p.status, command)
	p.Commands = []int{1}
}

// call prepares one magic or shell command.
func (p *preparer) call(c gocell.Cell, call gocell.Call) error {
	if err := c.CheckCall(call); err != nil {
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
		if err := checkLetters(m, call.Rest()); err != nil {
			return err
		}
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

// execAlone returns the program for an %exec in a cell without Go, for which GoNB would run
// nothing. The last semicolon keeps the call from being the cell's value.
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
