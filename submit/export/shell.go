package export

import (
	"fmt"
	"maps"
	"strings"

	"gonbatch/internal/rundir"
	"gonbatch/submit/export/script"
)

// shellCommand is a shell line or cell, with its environment and folder.
type shellCommand struct {
	line int
	// title is the command as the notebook has it, in one line.
	title string
	// run are the lines of a script that run it.
	run string
	env map[string]string
	dir string
	// mayFail lets the job continue after a failure.
	mayFail bool
}

// queue adds a command that becomes a cell of the job.
func (s *session) queue(m played, run string) error {
	if strings.ContainsRune(run, 0) {
		return m.errorf("the shell command has a NUL byte; remove it")
	}
	s.shells = append(s.shells, shellCommand{
		line: m.Line, title: shortened(string(m.Mark) + m.Text), run: run, env: maps.Clone(s.env), dir: s.dir, mayFail: s.mayFail,
	})
	return nil
}

// takeShells returns the commands of the cell that ran last, and forgets them.
func (s *session) takeShells() []shellCommand {
	shells := s.shells
	s.shells = nil
	return shells
}

// shellLine is a ! line.
func (s *session) shellLine(m played) error { return s.queue(m, script.Line(m.Text)) }

// shellCell is %%bash or %%sh.
func (s *session) shellCell(m played) error {
	shell := strings.TrimPrefix(m.Name(), "%%")
	if args := m.Args(); len(args) > 0 {
		return m.errorf("%s takes no arguments; write %%%%script %s %s", m.Name(), shell, strings.Join(args, " "))
	}
	return s.queue(m, script.Feed([]string{shell}, "\n"+m.body()))
}

// script is %%script.
func (s *session) script(m played) error {
	args := m.Args()
	if len(args) == 0 {
		return m.errorf("%%%%script needs the command that gets the cell: %%%%script COMMAND [ARGUMENTS]")
	}
	return s.queue(m, script.Feed(args, m.body()))
}

// writeFile is %%writefile.
func (s *session) writeFile(m played) error {
	args := m.Args()
	add := len(args) > 1 && args[0] == "-a"
	if add {
		args = args[1:]
	}
	if len(args) != 1 || args[0] == "" {
		return m.errorf("%%%%writefile takes one file: %%%%writefile [-a] FILE; quote a name that has spaces")
	}
	return s.queue(m, script.WriteTo(args[0], add, m.body()))
}

// body is the cell without its first line; every line of it ends in a newline.
func (m played) body() string {
	if len(m.code.Lines) == 1 {
		return ""
	}
	return m.code.Body() + "\n"
}

// addShell adds the job's cell of a shell command.
func (e *exporter) addShell(cell *cellInfo, sh shellCommand, picked bool) {
	name := e.namer.unique(shellName(cell))
	made := rundir.Cell{
		Name: name, Number: cell.Number, ID: cell.ID, Env: sh.env, Dir: sh.dir,
		Line: sh.line, Title: sh.title, Shell: true, Once: true, MayFail: sh.mayFail,
	}
	e.all = append(e.all, made)
	if !picked && !e.picks.wants(name, cell) {
		return
	}
	e.module.Files[made.Script()] = cell.script(printable(fmt.Sprintf("%s, line %d: %s", cell.ref, sh.line, sh.title)), sh.mayFail).Command(sh.run)
	e.module.Cells = append(e.module.Cells, made)
}

// shellName begins the names of the job's cells that run a cell's shell commands. It is never made
// from the heading: that is the main cell's.
func shellName(cell *cellInfo) string { return fmt.Sprintf("shell-%d", cell.Number) }

// titleLimit is the length of a command in messages.
const titleLimit = 60

// shortened is a command in one line that is not too long.
func shortened(command string) string {
	line, _, _ := strings.Cut(command, "\n")
	runes := []rune(printable(strings.TrimRight(line, " \t\r")))
	if len(runes) > titleLimit {
		return string(runes[:titleLimit-3]) + "..."
	}
	return string(runes)
}
