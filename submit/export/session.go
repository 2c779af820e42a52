package export

import (
	"fmt"
	"regexp"

	"gonbatch/internal/gocell"
	"gonbatch/submit/export/decl"
	"gonbatch/submit/export/input"
	"gonbatch/submit/export/nbcell"
	"gonbatch/submit/export/pitfall"
	"gonbatch/submit/export/script"
)

// session simulates a kernel that runs the cells one after another: it remembers what GoNB would.
type session struct {
	decls   *decl.Set
	kept    kept // by %keep
	env     map[string]string
	dir     string
	goFlags []string
	// args are the next program's arguments; they last until a cell with Go has run. cellArgs are
	// the arguments of the cell that ran last.
	args, cellArgs []string
	mods           []*ModuleCommand
	warnings       []nbcell.Note
	// shells are the current cell's commands.
	shells []shellCommand
	// sources are the sources of the cells that ran.
	sources []string
	params  input.Parameters
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
	flags    input.Flags
	notes    []nbcell.Note
	findings pitfall.Findings
}

// newSession returns the session of a kernel that has just started.
func newSession(notebookDir string) *session {
	return &session{
		notebookDir: notebookDir, decls: decl.NewSet(), findings: pitfall.NewFindings(), env: map[string]string{},
		kept: kept{at: map[string]played{}, new: map[string]bool{}},
	}
}

// warn adds a warning about something that the exported programs do without.
func (s *session) warn(cell *nbcell.Cell, line int, message string) {
	s.warnings = append(s.warnings, nbcell.Note{Ref: cell.Ref, Line: line, Message: message})
}

// run runs a cell up to its main, which it returns: all magics first, then the declarations, as in
// GoNB.
func (s *session) run(cell *nbcell.Cell) (main *decl.Decl, err error) {
	source := gocell.TypedParameters(gocell.PlainLines(cell.Source), s.sources)
	s.sources = append(s.sources, source)
	code := gocell.Parse(source)
	s.shells = nil
	s.checkTags(cell)
	s.mayFail = cell.HasTag(nbcell.MayFailTag) || code.Has(gocell.AllowFail)
	s.isTest, s.capture = code.Has(gocell.Test), script.Capture{}
	if code.Program != nil {
		return nil, s.magic(cell, code, *code.Program)
	}
	for _, call := range code.Calls {
		if err := code.CheckCall(call); err != nil {
			return nil, cell.Errorf(call.Line, "%v", err)
		}
		if err := s.magic(cell, code, call); err != nil {
			return nil, err
		}
	}
	s.warnOfMisread(cell, code)
	file := code.File()
	if line, err := file.CheckMains(); err != nil {
		return nil, cell.Errorf(line, "%v", err)
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
	s.decls.Add(decls)
	s.addKept(cell, decls.Main)
	if s.isTest {
		return s.testMain(cell, decls), nil
	}
	return decls.Main, nil
}

// checkTags warns about tags that are probably misspelled.
func (s *session) checkTags(cell *nbcell.Cell) {
	for _, tag := range cell.Tags {
		if meant := nbcell.Meant(tag); meant != "" {
			s.warn(cell, 1, fmt.Sprintf("the tag %q only names the cell: did you mean %s?", tag, meant))
		}
	}
}

// packageClause matches a whole package clause.
var packageClause = regexp.MustCompile(`^package\s+\w+\s*(//.*|/\*.*)?$`)

// warnOfMisread warns about lines that GoNB reads in another way than their author may expect, such
// as those that look like package clauses.
func (s *session) warnOfMisread(cell *nbcell.Cell, code gocell.Cell) {
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
func (s *session) parse(cell *nbcell.Cell, file gocell.File) (*decl.Cell, error) {
	if cell.HasParameters() {
		if err := s.params.Apply(cell, &file); err != nil {
			return nil, err
		}
	}
	code, err := cell.Parse(file)
	if err != nil {
		return nil, err
	}
	decls, err := decl.In(code)
	if err != nil {
		return nil, err
	}
	s.findings.Add(code)
	s.flags.Add(code)
	if !cell.HasParameters() {
		s.warnOfRedeclared(cell, decls)
	}
	return decls, nil
}

// warnOfRedeclared warns about parameters with given values that a cell without the tag declares
// again.
func (s *session) warnOfRedeclared(cell *nbcell.Cell, decls *decl.Cell) {
	for _, d := range decls.Decls {
		for _, name := range d.Names {
			if _, given := s.params.Values[name]; given {
				s.warn(cell, 1, name+" is declared again here, so -p "+name+" has no effect from this cell on")
			}
		}
	}
}
