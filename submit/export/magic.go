package export

import (
	"maps"
	"path"
	"slices"
	"strings"

	"gonbatch/internal/gocell"
	"gonbatch/submit/export/decl"
	"gonbatch/submit/export/nbcell"
	"gonbatch/submit/export/script"
)

// played is a magic or a shell command, with its cell.
type played struct {
	gocell.Call
	cell *nbcell.Cell
	// code is the parsed cell.
	code gocell.Cell
}

// errorf returns the error for a mistake in the magic's line.
func (m played) errorf(format string, args ...any) *nbcell.Error {
	return m.cell.Errorf(m.Line, format, args...)
}

// handlers run the magics that gocell's table lets a job apply or run once.
var handlers = map[string]func(*session, played) error{
	"%%":                 (*session).setArgs,
	"%main":              (*session).setArgs,
	"%args":              (*session).setArgs,
	gocell.Exec:          (*session).exec,
	gocell.Test:          (*session).test,
	gocell.Env:           (*session).setEnv,
	"%cd":                (*session).changeDir,
	"%capture":           (*session).captureOutput,
	gocell.Flags:         (*session).setFlags,
	gocell.Reset:         (*session).reset,
	gocell.RemoveShort:   (*session).forget,
	gocell.Remove:        (*session).forget,
	gocell.Keep:          (*session).keep,
	gocell.Result:        (*session).result,
	gocell.AllowFail:     func(*session, played) error { return nil }, // It also applies to the commands above it.
	gocell.Shell:         (*session).shellLine,
	gocell.ShellInModule: (*session).shellInModule,
	"%%bash":             (*session).shellCell,
	"%%sh":               (*session).shellCell,
	"%%script":           (*session).script,
	"%%writefile":        (*session).writeFile,
}

// magic runs one magic.
func (s *session) magic(cell *nbcell.Cell, code gocell.Cell, call gocell.Call) error {
	m := played{call, cell, code}
	switch row := call.Magic(); row.InJob {
	case gocell.LeftOut:
		s.warn(cell, call.Line, row.Name+" "+row.Why)
	case gocell.Refused:
		return m.errorf("%s %s", row.Name, row.Why)
	case gocell.Ignored:
	default:
		return handlers[row.Name](s, m)
	}
	return nil
}

// setArgs implements %args, %% and %main, whose arguments are the program's.
func (s *session) setArgs(m played) error {
	s.args = m.Args()
	return nil
}

// exec implements %exec.
func (s *session) exec(m played) error {
	s.args = m.Args()[1:]
	return nil
}

// test implements %test.
func (s *session) test(m played) error {
	s.args, s.testLine = m.Args(), m.Line
	return nil
}

// setEnv implements %env: NAME VALUE or NAME=VALUE.
func (s *session) setEnv(m played) error {
	name, value, err := m.Env()
	if err != nil {
		return m.errorf("%v", err)
	}
	s.env[name] = value
	return nil
}

// changeDir implements %cd. A relative folder is relative to the current one, at first the
// notebook's.
func (s *session) changeDir(m played) error {
	args := m.Args()
	switch {
	case len(args) > 1:
		return m.errorf("%%cd takes one folder, not %d; quote a name that has spaces", len(args))
	case len(args) == 0:
	case path.IsAbs(args[0]) || args[0] == "~" || strings.HasPrefix(args[0], "~/"):
		s.dir = path.Clean(args[0])
	default:
		s.dir = path.Join(s.dir, args[0])
	}
	return nil
}

// captureOutput implements %capture, for the cell's program.
func (s *session) captureOutput(m played) error {
	file, add, err := m.file()
	s.capture = script.Capture{File: file, Append: add}
	if err == nil && m.code.FirstGo() < 0 && !m.code.Has(gocell.Exec) && !m.code.Has(gocell.Test) {
		s.warn(m.cell, m.Line, "the cell has no program whose output could be captured: no file is written")
	}
	return err
}

// setFlags implements %goflags. Without arguments the magic only prints the flags, which nobody
// would see in a job.
func (s *session) setFlags(m played) error {
	if args := m.Args(); len(args) > 0 {
		s.goFlags = slices.DeleteFunc(slices.Clone(args), func(a string) bool { return a == "" })
	}
	return nil
}

// reset implements %reset, which forgets all declarations and the changes to go.mod, and %reset
// go.mod, which forgets only the latter.
func (s *session) reset(m played) error {
	args := m.Args()
	if len(args) > 1 || len(args) == 1 && args[0] != "go.mod" {
		return m.errorf(`%%reset takes nothing or "go.mod"`)
	}
	if len(args) == 0 {
		s.decls = decl.NewSet()
		s.kept.drop(slices.Collect(maps.Keys(s.kept.at))...)
	}
	s.mods = nil
	return nil
}

// forget implements %rm.
func (s *session) forget(m played) error {
	s.kept.drop(m.Args()...)
	for _, key := range m.Args() {
		if !s.decls.Forget(key) {
			s.warn(m.cell, m.Line, m.Name()+" "+key+": nothing of that name was declared above")
		}
	}
	return nil
}

// result implements %result: a job doesn't have its value.
func (s *session) result(m played) error {
	_, name, err := gocell.ResultArgs(m.Rest())
	if err == nil && name != "" {
		s.warn(m.cell, m.Line, name+" is a value of the notebook only: tag the cells that use it notebook-only")
	}
	return nil
}
