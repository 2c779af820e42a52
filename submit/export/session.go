package export

import (
	"regexp"

	"gonbatch/internal/gocell"
	"gonbatch/submit/export/script"
)

// session simulates a kernel that runs the cells one after another: it remembers what GoNB would.
type session struct {
	decls   *declSet
	kept    kept // by %keep
	env     map[string]string
	dir     string
	goFlags []string
	// args are the next program's arguments; they last until a cell with Go has run. cellArgs are
	// the arguments of the cell that ran last.
	args, cellArgs []string
	mods           []*ModuleCommand
	warnings       []Note
	// shells are the current cell's commands.
	shells []shellCommand
	// sources are the sources of the cells that ran.
	sources []string
	params  parameters
	// packages are what the kept variables' initial values may come from.
	packages packages
	// notebookDir is the notebook's folder, where the kernel starts.
	notebookDir string
	// isTest is set if the current cell's program runs tests, mayFail if the current cell's
	// commands may fail.
	isTest, mayFail bool
	// capture is the current cell's %capture.
	capture script.Capture
	// testLine is the line of the last %test.
	testLine int
	flags    []Flag
	// addsFlags is the cell that calls AddFlags of trainer's Config.
	addsFlags *CellRef
	notes     []Note
	findings  findings
	// end is the last main's dead end.
	end *deadEnd
}

// newSession returns the session of a kernel that has just started.
func newSession(notebookDir string) *session {
	return &session{notebookDir: notebookDir, decls: newDeclSet(), findings: newFindings(), env: map[string]string{}}
}

// warn adds a warning about something that the exported programs do without.
func (s *session) warn(cell *cellInfo, line int, message string) {
	s.warnings = append(s.warnings, Note{CellRef: cell.ref, Line: line, Message: message})
}

// run runs a cell up to its main, which it returns: all magics first, then the declarations, as in
// GoNB.
func (s *session) run(cell *cellInfo) (main *decl, err error) {
	source := gocell.TypedParameters(gocell.PlainLines(cell.Source), s.sources)
	s.sources = append(s.sources, source)
	code := gocell.Parse(source)
	s.mayFail = cell.HasTag(MayFailTag) || code.Has(gocell.AllowFail)
	s.isTest, s.capture = code.Has(gocell.Test), script.Capture{}
	if code.Program != nil {
		return nil, s.magic(cell, code, *code.Program)
	}
	for _, call := range code.Calls {
		if err := code.CheckCall(call); err != nil {
			return nil, cell.errorf(call.Line, "%v", err)
		}
		if err := s.magic(cell, code, call); err != nil {
			return nil, err
		}
	}
	s.warnOfMisread(cell, code)
	file := code.File()
	if line, err := file.CheckMains(); err != nil {
		return nil, cell.errorf(line, "%v", err)
	}
	if !s.isTest && code.FirstGo() < 0 && !code.Has(gocell.Exec) {
		return nil, nil // Nothing runs, and the next cell gets the arguments, as in GoNB.
	}
	s.lastValue(cell, &file)
	s.cellArgs, s.args = s.args, nil
	decls, err := s.parse(cell, file)
	if err != nil {
		return nil, err
	}
	s.decls.add(decls)
	s.addKept(cell, decls.main)
	s.flags, s.end = addFlags(s.flags, decls.flags), decls.end
	if decls.addsFlags {
		s.addsFlags = &cell.ref
	}
	s.notes = append(s.notes, decls.findings...)
	if decls.main == nil {
		s.notes = append(s.notes, decls.notes...)
	}
	if s.isTest {
		return s.testMain(cell, decls), nil
	}
	return decls.main, nil
}

// packageClause matches a whole package clause.
var packageClause = regexp.MustCompile(`^package\s+\w+\s*(//.*|/\*.*)?$`)

// warnOfMisread warns about lines that GoNB reads in another way than their author may expect, such
// as those that look like package clauses.
func (s *session) warnOfMisread(cell *cellInfo, code gocell.Cell) {
	told := map[int]bool{}
	for _, remark := range code.Remarks() {
		s.warn(cell, remark.Line, remark.Message)
		told[remark.Line] = true
	}
	for i, line := range code.Lines {
		if code.Kinds[i] == gocell.PackageLine && !told[i+1] && !packageClause.MatchString(line) {
			s.warn(cell, i+1, `GoNB drops this line, since it begins with "package": indent it`)
		}
	}
}

// parse parses a cell's Go code, with the given values of its parameters.
func (s *session) parse(cell *cellInfo, file gocell.File) (*cellDecls, error) {
	isParameters := cell.HasTag(ParametersTag) || cell.HasTag(InjectedTag)
	if isParameters {
		if err := s.params.apply(cell, &file); err != nil {
			return nil, err
		}
	}
	decls, err := parseDecls(cell, file, &s.findings)
	if err != nil || isParameters {
		return decls, err
	}
	for _, name := range s.params.redeclared(decls) {
		s.warn(cell, 1, name+" is declared again here, so -p "+name+" has no effect from this cell on")
	}
	return decls, nil
}
