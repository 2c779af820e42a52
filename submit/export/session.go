package export

import (
	"regexp"

	"gonbatch/internal/gocell"
	"gonbatch/submit/export/script"
)

// session plays the kernel that runs the cells one after the other: it remembers what GoNB would.
type session struct {
	decls   *declSet
	kept    kept // by %keep
	env     map[string]string
	dir     string
	goFlags []string
	// args are the next program's; they last until a cell with Go ran. cellArgs are those of the
	// cell that ran last.
	args, cellArgs []string
	mods           []*ModuleCommand
	warnings       []Note
	// shells are the commands of the cell that runs.
	shells []shellCommand
	// sources are the cells that ran.
	sources []string
	params  parameters
	// notebookDir is the notebook's folder, which the kernel starts in.
	notebookDir string
	// isTest is set if the program of the cell that ran last runs tests; mayFail if the commands
	// of the cell that runs may fail.
	isTest, mayFail bool
	// capture is the %capture of the cell that ran last.
	capture script.Capture
	// testLine is the line of the %test that was found last.
	testLine int
	flags    []Flag
	// addsFlags is the cell that calls AddFlags, as trainer's Config has it.
	addsFlags *CellRef
	notes     []Note
	findings  findings
	// end is that of the main that was found last.
	end *deadEnd
}

// newSession is a kernel that has just started.
func newSession(notebookDir string) *session {
	return &session{notebookDir: notebookDir, decls: newDeclSet(), findings: newFindings(), env: map[string]string{}}
}

// warn notes something that the exported programs do without.
func (s *session) warn(cell *cellInfo, line int, message string) {
	s.warnings = append(s.warnings, Note{CellRef: cell.ref, Line: line, Message: message})
}

// run plays a cell up to its main, which it returns: all magics first, then the declarations, as
// GoNB does.
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
		if err := call.Check(); err != nil {
			return nil, cell.errorf(call.Line, "%v", err)
		}
		if err := s.magic(cell, code, call); err != nil {
			return nil, err
		}
	}
	s.warnOfDropped(cell, code)
	file := code.File()
	if len(file.Mains) > 1 {
		return nil, cell.errorf(file.Mains[1], "line %d has begun the cell's main already; split the cell into two", file.Mains[0])
	}
	if !s.isTest && code.FirstGo() < 0 && !code.Has(gocell.Exec) {
		return nil, nil // Nothing runs, and the arguments wait for the next cell, as in GoNB.
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

// packageClause is a whole package clause.
var packageClause = regexp.MustCompile(`^package\s+\w+\s*(//.*|/\*.*)?$`)

// warnOfDropped warns of lines that GoNB takes for package clauses and drops.
func (s *session) warnOfDropped(cell *cellInfo, code gocell.Cell) {
	for i, line := range code.Lines {
		if code.Kinds[i] == gocell.PackageLine && !packageClause.MatchString(line) {
			s.warn(cell, i+1, `GoNB drops this line, since it begins with "package": indent it`)
		}
	}
}

// parse reads the Go of a cell, with the values that were given for its parameters.
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
		s.warn(cell, 1, name+" is declared again here, so -p "+name+" does not count from this cell on")
	}
	return decls, nil
}
