package export

import (
	"gonbatch/internal/rundir"
	"maps"
	"strings"
)

// shellCommand is a shell line or cell, with what surrounds it when its turn comes.
type shellCommand struct {
	line int
	// title is the command as the notebook has it, in one line.
	title string
	// run are the lines of a script that run it.
	run string
	env map[string]string
	dir string
	// mayFail tells that nobody minds how it ends.
	mayFail bool
}

// queue notes a command that becomes a step of its own.
func (s *session) queue(cell *cellInfo, m magicLine, run string) error {
	if strings.ContainsRune(run, 0) {
		return cell.errorf(m.line, "the shell command has a NUL byte; remove it")
	}
	s.shells = append(s.shells, shellCommand{
		line: m.line, title: shortened(string(m.kind) + m.text), run: run, env: maps.Clone(s.env), dir: s.dir, mayFail: s.mayFail,
	})
	return nil
}

// takeShells gives the commands of the cell that ran last.
func (s *session) takeShells() []shellCommand {
	shells := s.shells
	s.shells = nil
	return shells
}

// special plays a cell that is not Go: one for a shell or a script, or one that is a file's content.
func (s *session) special(cell *cellInfo, m magicLine) error {
	name, args := m.name(), m.args()
	switch name {
	case "%bash", "%sh":
		if len(args) > 0 {
			return cell.errorf(1, "%%%s takes no arguments; write %%%%script %s %s", name, name[1:], strings.Join(args, " "))
		}
		return s.queue(cell, m, feed([]string{name[1:]}, "\n"+cellBody(cell)))
	case "%script":
		if len(args) == 0 {
			return cell.errorf(1, "%%%%script needs the command that gets the cell: %%%%script COMMAND [ARGUMENTS]")
		}
		return s.queue(cell, m, feed(args, cellBody(cell)))
	case "%writefile":
		return s.writeFile(cell, m, args)
	}
	s.warn(cell, 1, "%"+name+" is not run on the cluster")
	return nil
}

// writeFile is %%writefile.
func (s *session) writeFile(cell *cellInfo, m magicLine, args []string) error {
	add := len(args) > 1 && args[0] == "-a"
	if add {
		args = args[1:]
	}
	if len(args) != 1 || args[0] == "" {
		return cell.errorf(1, "%%%%writefile takes one file: %%%%writefile [-a] FILE; quote a name that has spaces")
	}
	return s.queue(cell, m, writeTo(args[0], add, cellBody(cell)))
}

// cellBody is a cell without its first line; every line of it ends in a newline.
func cellBody(cell *cellInfo) string {
	_, body, ok := strings.Cut(strings.ReplaceAll(cell.Source, "\r\n", "\n"), "\n")
	if !ok {
		return ""
	}
	return body + "\n"
}

// shellStep adds the step of a shell command.
func (e *exporter) shellStep(cell *cellInfo, sh shellCommand, picked bool) {
	name := e.namer.unique(shellName(cell))
	step := rundir.Step{
		Name: name, Cell: cell.Number, CellID: cell.ID, Env: sh.env, Dir: sh.dir,
		Line: sh.line, Title: sh.title, Shell: true, Once: true, MayFail: sh.mayFail,
	}
	e.all = append(e.all, step)
	if !picked && !e.picks.wants(name, cell) {
		return
	}
	e.module.Files[step.Script()] = renderScript(cell, sh)
	e.module.Steps = append(e.module.Steps, step)
}
