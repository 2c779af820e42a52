package export

import (
	"fmt"
	"maps"
	"strings"

	"gonbatch/internal/rundir"
	"gonbatch/submit/export/nbcell"
	"gonbatch/submit/export/script"
)

// shellCommand is a cell of the job for a shell line or cell, as yet without a name.
type shellCommand struct {
	made rundir.Cell
	// run are the script lines that run it.
	run string
}

// queue adds a command that becomes a cell of the job.
func (s *session) queue(m played, run string) error {
	if strings.ContainsRune(run, 0) {
		return m.errorf("the shell command has a NUL byte; remove it")
	}
	s.shells = append(s.shells, shellCommand{run: run, made: rundir.Cell{
		Number: m.cell.Number, Alias: m.cell.Alias, ID: m.cell.ID, Line: m.Line, Title: shortened(string(m.Mark) + m.Text),
		Env: maps.Clone(s.env), Dir: s.dir, Shell: true, Once: true, MayFail: s.mayFail,
	}})
	return nil
}

// shellLine handles a ! line.
func (s *session) shellLine(m played) error {
	s.checkBackground(m, m.Text)
	return s.queue(m, script.Line(m.Text))
}

// checkBackground warns about what commands leave running: in the kernel it would go on.
func (s *session) checkBackground(m played, commands string) {
	if script.LeavesRunning(commands) {
		s.warn(m.cell, m.Line, "what this leaves running in the background ends with it in a job: if a program needs it, start it there (os/exec)")
	}
}

// shellCell implements %%bash and %%sh.
func (s *session) shellCell(m played) error {
	shell := strings.TrimPrefix(m.Name(), "%%")
	if args := m.Args(); len(args) > 0 {
		return m.errorf("%s takes no arguments; write %%%%script %s %s", m.Name(), shell, strings.Join(args, " "))
	}
	s.checkBackground(m, m.body())
	return s.queue(m, script.Feed([]string{shell}, "\n"+m.body()))
}

// script implements %%script.
func (s *session) script(m played) error {
	args := m.Args()
	if len(args) == 0 {
		return m.errorf("%%%%script needs the command that gets the cell: %%%%script COMMAND [ARGUMENTS]")
	}
	return s.queue(m, script.Feed(args, m.body()))
}

// writeFile implements %%writefile.
func (s *session) writeFile(m played) error {
	file, add, err := m.file()
	if err != nil {
		return err
	}
	return s.queue(m, script.WriteTo(file, add, m.body()))
}

// file parses the arguments [-a] FILE.
func (m played) file() (name string, add bool, err error) {
	args := m.Args()
	if add = len(args) > 1 && args[0] == "-a"; add {
		args = args[1:]
	}
	if len(args) != 1 || args[0] == "" {
		return "", false, m.errorf("%s takes one file: %s [-a] FILE; quote a name that has spaces", m.Name(), m.Name())
	}
	return args[0], add, nil
}

// body returns the cell without its first line; every line ends in a newline.
func (m played) body() string {
	if len(m.code.Lines) == 1 {
		return ""
	}
	return m.code.Body() + "\n"
}

// addShell adds a cell of the job for a shell command.
func (e *exporter) addShell(cell *nbcell.Cell, sh shellCommand, picked bool) {
	made := sh.made
	made.Name = e.namer.unique("shell-" + e.namer.label(cell)) // The heading names the main cell.
	e.all = append(e.all, made)
	if !picked && !e.picks.wants(made.Name, cell) {
		return
	}
	place := nbcell.Printable(fmt.Sprintf("%s, line %d: %s", cell.Ref, made.Line, made.Title))
	e.module.Files[made.Script()] = scriptOf(cell, place, made.MayFail).Command(sh.run)
	e.module.Cells = append(e.module.Cells, made)
}

// scriptOf returns the script for a cell of the job that comes from a cell.
func scriptOf(cell *nbcell.Cell, place string, mayFail bool) script.Script {
	return script.Script{Notebook: cell.Ref.Notebook, Place: place, MayFail: mayFail}
}

// titleLimit is the maximum length of a command in messages.
const titleLimit = 60

// shortened cuts a command to its first line and to titleLimit.
func shortened(command string) string {
	line, _, _ := strings.Cut(command, "\n")
	runes := []rune(nbcell.Printable(strings.TrimRight(line, " \t\r")))
	if len(runes) > titleLimit {
		return string(runes[:titleLimit-3]) + "..."
	}
	return string(runes)
}
