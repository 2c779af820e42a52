package export

import (
	"path"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
)

// session plays the kernel that runs the cells one after the other: it remembers what GoNB would.
type session struct {
	decls   *declSet
	kept    []string // by %keep
	env     map[string]string
	dir     string
	goFlags []string
	// args are the next program's; they last until a cell with Go ran. cellArgs are those of the cell that ran last.
	args, cellArgs []string
	mods           []modEdit
	warnings       []Warning
	// shells are the commands of the cell that runs.
	shells []shellCommand
	params parameters
	// notebookDir is the notebook's folder, which the kernel starts in.
	notebookDir string
	// isTest tells that the program of the cell that ran last runs tests; mayFail that the commands of the cell that runs may
	// fail.
	isTest, mayFail bool
	// testLine is the line of the %test that was found last.
	testLine int
	flags    []Flag
	notes    []Note
	findings findings
	// end is that of the main that was found last.
	end *deadEnd
}

// newSession is a kernel that has just started.
func newSession(notebookDir string) *session {
	return &session{notebookDir: notebookDir, decls: newDeclSet(), findings: newFindings(), env: map[string]string{}}
}

// warn notes something that the exported programs do without.
func (s *session) warn(cell *cellInfo, line int, message string) {
	s.warnings = append(s.warnings, Warning{CellRef: cell.ref, Line: line, Message: message})
}

// run plays a cell up to its main, which it returns: all magics first, then the declarations, as GoNB does.
func (s *session) run(cell *cellInfo) (main *decl, err error) {
	code := splitCell(cell.Source)
	s.mayFail = cell.HasTag(MayFailTag) || code.has(allowFail)
	s.isTest = code.has("test")
	if code.special != nil {
		return nil, s.special(cell, *code.special)
	}
	opened := &mainOpener{cell: cell, code: &code}
	for _, m := range code.magics {
		if err := s.magic(cell, m, opened); err != nil {
			return nil, err
		}
	}
	s.lastValue(cell, &code, opened.tail())
	if !s.isTest && (!code.hasGo() || opened.onlyOpens()) {
		return nil, nil
	}
	s.cellArgs, s.args = s.args, nil
	decls, err := s.parse(cell, code.goLines, opened.tail())
	if err != nil {
		return nil, err
	}
	s.decls.add(decls)
	s.addKept(cell, decls.main)
	s.flags, s.end = addFlags(s.flags, decls.flags), decls.end
	s.notes = append(s.notes, decls.findings...)
	if decls.main == nil {
		s.notes = append(s.notes, decls.notes...)
	}
	if s.isTest {
		return s.testMain(cell, decls), nil
	}
	return decls.main, nil
}

// parse reads the Go of a cell, with the values that were given for its parameters.
func (s *session) parse(cell *cellInfo, goLines []string, tail string) (*cellDecls, error) {
	isParameters := cell.HasTag(ParametersTag) || cell.HasTag(InjectedTag)
	if isParameters {
		var err error
		if goLines, err = s.params.apply(cell, goLines, tail); err != nil {
			return nil, err
		}
	}
	decls, err := parseDecls(cell, goLines, tail, &s.findings)
	if err != nil || isParameters {
		return decls, err
	}
	for _, name := range s.params.redeclared(decls) {
		s.warn(cell, 1, name+" is declared again here, so -p "+name+" does not count from this cell on")
	}
	return decls, nil
}

// magic plays one magic.
func (s *session) magic(cell *cellInfo, m magicLine, opened *mainOpener) error {
	if m.kind == '!' {
		return s.shell(cell, m)
	}
	name, args := m.name(), m.args()
	switch name {
	case "%", "main":
		s.args = args
		return opened.open(m.line, "func main() { flag.Parse()")
	case "exec":
		if len(args) == 0 {
			return cell.errorf(m.line, "%%exec needs the name of the function to run: %%exec FUNCTION [ARGUMENTS]")
		}
		s.args = args[1:]
		return opened.complete(m.line, "func main() { flag.Parse(); "+args[0]+"() }")
	case "args":
		s.args = args
	case "keep":
		return s.keep(cell, m)
	case "env":
		return s.setEnv(cell, m, args)
	case "cd":
		return s.changeDir(cell, m, args)
	case "goflags":
		if len(args) > 0 {
			s.goFlags = slices.DeleteFunc(slices.Clone(args), func(a string) bool { return a == "" })
		}
	case "rm", "remove":
		for _, key := range args {
			if !s.decls.forget(key) {
				s.warn(cell, m.line, "%"+name+" "+key+": nothing of that name was declared above")
			}
		}
	case "reset":
		return s.reset(cell, m, args)
	case "test":
		s.args, s.testLine = args, m.line
	case allowFail:
	case "wasm":
		return cell.errorf(m.line, "%%wasm runs the cell in a browser, and a job has none; tag the cell notebook-only")
	case "capture":
		s.warn(cell, m.line, "%capture writes no file on the cluster: the logs of the ranks have all output")
	case "result":
		if n := len(args); n >= 2 && args[n-2] == "as" {
			s.warn(cell, m.line, args[n-1]+" is a value of the notebook only: tag the cells that use it notebook-only")
		}
	case "with_inputs", "with_password":
		return cell.errorf(m.line, "%%%s waits for a person, and a job has none; give the command its input, or tag the cell notebook-only", name)
	default:
		return unknownMagic(cell, m)
	}
	return nil
}

// setEnv is %env: NAME VALUE or NAME=VALUE.
func (s *session) setEnv(cell *cellInfo, m magicLine, args []string) error {
	if len(args) == 1 {
		if name, value, ok := strings.Cut(args[0], "="); ok {
			args = []string{name, value}
		}
	}
	if len(args) != 2 || args[0] == "" {
		return cell.errorf(m.line, "%%env takes a name and a value: %%env NAME VALUE; quote a value that has spaces")
	}
	s.env[args[0]] = args[1]
	return nil
}

// changeDir is %cd. A relative folder counts from the one before, at first the notebook's.
func (s *session) changeDir(cell *cellInfo, m magicLine, args []string) error {
	switch {
	case len(args) > 1:
		return cell.errorf(m.line, "%%cd takes one folder, not %d; quote a name that has spaces", len(args))
	case len(args) == 0:
	case path.IsAbs(args[0]) || args[0] == "~" || strings.HasPrefix(args[0], "~/"):
		s.dir = path.Clean(args[0])
	default:
		s.dir = path.Join(s.dir, args[0])
	}
	return nil
}

// reset is %reset, which forgets all declarations, and %reset go.mod, which forgets the changes to go.mod.
func (s *session) reset(cell *cellInfo, m magicLine, args []string) error {
	if len(args) > 1 || len(args) == 1 && args[0] != "go.mod" {
		return cell.errorf(m.line, `%%reset takes nothing or "go.mod"`)
	}
	if len(args) == 0 {
		s.decls = newDeclSet()
	}
	s.mods = nil
	return nil
}

// quietMagics only matter to a person at the notebook.
var quietMagics = []string{
	"autoget", "noautoget", "help", "version", "ls", "list", "track", "untrack",
	"goworkfix", "widgets", "widgets_hb",
}

// knownMagics are all that a notebook may have.
var knownMagics = append([]string{
	"%", "main", "exec", "args", "env", "cd", "goflags", "rm", "remove", "reset", "test", "wasm", "capture", allowFail,
	"with_inputs", "with_password",
	"%writefile", "%script", "%bash", "%sh", "%gx", "%submit", "keep",
}, quietMagics...)

// unknownMagic is the error for a magic that GoNB does not have either, or nil for one that needs nothing done.
func unknownMagic(cell *cellInfo, m magicLine) error {
	name := m.name()
	switch {
	case slices.Contains(quietMagics, name), slices.Contains(personMagics, name):
		return nil
	case cellMagics[name]:
		return cell.errorf(m.line, "%%%s can only stand on the first line of a cell", name)
	}
	if near := nearest(name, slices.Concat(knownMagics, personMagics)); len(near) > 0 {
		return cell.errorf(m.line, "unknown magic %%%s; did you mean %%%s?", name, strings.Join(near, " or %"))
	}
	return cell.errorf(m.line, "unknown magic %%%s; %%help in the notebook lists them", name)
}

// nearest gives the words that are at most two edits from name, the nearest only.
func nearest(name string, words []string) []string {
	best, found := 3, []string(nil)
	for _, word := range words {
		d := levenshtein.ComputeDistance(name, word)
		if d >= max(len(name), len(word)) {
			continue
		}
		if d < best {
			best, found = d, nil
		}
		if d == best && d < 3 {
			found = append(found, word)
		}
	}
	slices.Sort(found)
	return found
}
