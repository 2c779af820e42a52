package export

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"

	"gonbatch/internal/gocell"
	"gonbatch/internal/gomodule"
	"gonbatch/internal/nbformat"
	"gonbatch/internal/rundir"
	"gonbatch/submit/export/decl"
	"gonbatch/submit/export/gomod"
	"gonbatch/submit/export/input"
	"gonbatch/submit/export/nbcell"
	"gonbatch/submit/export/pitfall"
	"gonbatch/submit/export/program"
)

// modulePath is the exported module's path.
const modulePath = "notebook"

// Options configure an export.
type Options struct {
	// Cells picks main cells by tag, cell id, number or name; empty picks all cells that no tag
	// leaves out.
	Cells []string
	// SourceDir is gonbatch's own source tree, from source.Dir, for go.mod.
	SourceDir string
	// ModuleCache is the folder of downloaded modules, for looking up package names; empty is Go's
	// default.
	ModuleCache string
	// Resolved are the notebook's resolved modules; the zero value is gonbatch's own modules only.
	Resolved Resolved
	// Script asks for one program as one readable file, which Module.Script returns.
	Script bool
	// Parameters are values by name for the parameters that tagged cells declare.
	Parameters map[string]string
	// ParameterPlaces are the places in a file of the values that don't come from -p, by name.
	ParameterPlaces map[string]string
	// AtRunTime are the names of parameters that get their values when the programs start, where
	// that is possible: the runs of a sweep share their programs.
	AtRunTime []string
	// Kept is set if the job starts with values of %keep.
	Kept bool
}

// Resolved is the result of resolving a notebook's modules and packages.
type Resolved struct {
	// GoMod and GoSum are the contents of go.mod and go.sum.
	GoMod, GoSum []byte
	// Imports are the import paths of packages that no cell imports, by the name of the main cell
	// and the package's name there.
	Imports map[string]map[string]string
}

// FromNotebook composes the notebook's cells into a module. Mistakes in a cell are *nbcell.Error.
func FromNotebook(nb *nbformat.Notebook, opt Options) (*Module, error) {
	e, err := newExporter(nb, opt)
	if err != nil {
		return nil, err
	}
	for _, cell := range e.cells {
		if !cell.IsCode() || e.picks.leftOut(cell) {
			continue
		}
		if err := e.cell(cell); err != nil {
			return nil, err
		}
	}
	return e.finish()
}

// exporter holds the state of one export.
type exporter struct {
	Options
	cells   []*nbcell.Cell
	picks   picks
	session *session
	namer   namer
	mod     *modfile.File
	names   *gomod.Names
	module  *Module
	all     []rundir.Cell // including those not picked
	imports map[string]bool
	// shown are the declarations that an earlier program has already.
	shown map[*decl.Decl]bool
	// skipped are the main cells so far that are not picked.
	skipped []*nbcell.Cell
}

// newExporter prepares an export: it reads go.mod and describes the cells.
func newExporter(nb *nbformat.Notebook, opt Options) (*exporter, error) {
	opt.ModuleCache = cmp.Or(opt.ModuleCache, gomodule.CacheDir(os.Getenv))
	sourceDir, err := filepath.Abs(opt.SourceDir)
	if err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(filepath.Dir(nb.Path))
	if err != nil {
		return nil, err
	}
	own, err := gomod.Library(sourceDir, modulePath)
	mod := own
	if err == nil && opt.Resolved.GoMod != nil {
		mod, err = modfile.Parse("go.mod", opt.Resolved.GoMod, nil)
	}
	if err != nil {
		return nil, fmt.Errorf("export %s: %w", nb.Path, err)
	}
	cells := nbcell.Describe(nb)
	e := &exporter{
		Options: opt, cells: cells, picks: opt.Cells, session: newSession(dir), mod: mod,
		namer:   namer{cells, map[string]bool{}},
		names:   &gomod.Names{Mod: mod, SourceDir: sourceDir, ModCache: opt.ModuleCache},
		imports: map[string]bool{}, shown: map[*decl.Decl]bool{},
	}
	e.session.packages = newPackages(e.names, own, opt.Resolved)
	e.session.params = input.Parameters{
		Values: opt.Parameters, Places: opt.ParameterPlaces, AtRunTime: opt.AtRunTime, Late: map[string]json.RawMessage{},
	}
	e.module = &Module{
		Notebook: nbcell.Printable(nb.Name()), Files: map[string][]byte{}, ImportSites: map[string]nbcell.Site{},
		Sources: map[string]CellSource{}, Open: map[string][]string{}, SourceDir: sourceDir,
	}
	for _, cell := range e.cells {
		if cell.IsCode() {
			e.module.Sources[cell.File] = CellSource{cell.Ref, cell.Source, e.picks.leftOut(cell)}
		}
	}
	return e, nil
}

// cell runs one cell in the session, and makes cells of the job from its shell commands and its
// main.
func (e *exporter) cell(cell *nbcell.Cell) error {
	main, err := e.session.run(cell)
	if err != nil {
		return err
	}
	name, picked := "", false
	if main != nil {
		name = e.namer.name(cell)
		picked = e.picks.wants(name, cell)
	}
	for _, sh := range e.session.shells {
		e.addShell(cell, sh, picked)
	}
	if main == nil {
		return nil
	}
	return e.addMain(cell, name, main)
}

// newCell returns the job's cell for a main cell, with the session's current state.
func (e *exporter) newCell(cell *nbcell.Cell, name string) rundir.Cell {
	made := rundir.Cell{
		Name: name, Number: cell.Number, Alias: cell.Alias, ID: cell.ID, Test: e.session.isTest,
		Args: slices.Clone(e.session.cellArgs), Env: maps.Clone(e.session.env), Dir: e.session.dir,
		BuildFlags: slices.Clone(e.session.goFlags), MayFail: cell.HasTag(nbcell.MayFailTag), Capture: e.session.capture.File,
	}
	if late := e.session.params.Late; len(late) > 0 {
		text, _ := json.Marshal(late) // It can't fail: the values are JSON.
		made.Env[rundir.EnvParameters] = string(text)
	}
	made.Once = made.Test || slices.ContainsFunc(nbcell.OnceTags, cell.HasTag)
	return made
}

// program collects the parts of a program's source. Each declaration is in the first program after
// it, so that its mistakes are found, and in every program that needs it.
func (e *exporter) program(made rundir.Cell, cell *nbcell.Cell, main *decl.Decl) program.Program {
	// An unused dot import is an error, and the text doesn't show what uses it. Nothing names
	// tests.
	imports := e.session.decls.Imports()
	hasDot := slices.ContainsFunc(imports, func(imp *decl.Import) bool { return imp.Name == "." })
	decls := decl.Needed(e.session.decls.All(), main, func(d *decl.Decl) bool { return hasDot || made.Test || !e.shown[d] && !e.Script })
	for _, d := range decls {
		e.shown[d] = true
	}
	return program.Program{
		Made: made, Cell: cell, Cells: e.cells, Decls: decls, Main: main,
		Imports: imports, Script: e.Script,
	}
}

// addMain adds the program of a main cell, if it is picked.
func (e *exporter) addMain(cell *nbcell.Cell, name string, main *decl.Decl) error {
	made := e.newCell(cell, name)
	e.all = append(e.all, made)
	if !e.picks.wants(name, cell) {
		e.skipped = append(e.skipped, cell)
		return nil
	}
	e.warnOfInitial(cell)
	for _, command := range e.session.mods {
		if !slices.Contains(e.module.Commands, command) {
			e.module.Commands = append(e.module.Commands, command)
		}
	}
	data, imports, open, err := e.program(made, cell, main).Render(e.names, e.Resolved.Imports[name])
	if err != nil {
		return err
	}
	if len(open) > 0 {
		e.module.Open[name] = open
	}
	for _, imp := range imports {
		e.imports[imp.Path] = true
		if imp.Site != nil {
			e.module.ImportSites[imp.Path] = nbcell.Site{Ref: imp.Site.Cell.Ref, Line: imp.Site.Line}
		}
	}
	if !made.Once {
		e.session.notes = append(e.session.notes, e.session.findings.OfProgram()...)
	}
	e.module.Files[made.Source()] = data
	if keeps := program.Keeps(imports); (keeps || program.Logs(imports)) && !e.Script {
		e.module.Files[path.Join(path.Dir(made.Source()), nameFor(made, gocell.LogFile))] = []byte(gocell.LogSource(true, keeps))
	}
	if source := input.RunTimeSource(data); source != "" {
		e.module.Files[path.Join(path.Dir(made.Source()), nameFor(made, input.RunTimeFile))] = []byte(source)
	}
	if script := made.Script(); script != "" {
		text := scriptOf(cell, nbcell.Printable(cell.Ref.String()), made.MayFail)
		text.Capture = e.session.capture
		e.module.Files[script] = text.Program(made.Name)
	}
	e.module.Cells = append(e.module.Cells, made)
	return nil
}

// nameFor returns the name of a file that a program gets, as a test file if the cell runs tests:
// such a program has only test files.
func nameFor(cell rundir.Cell, file string) string {
	if cell.Test {
		return strings.TrimSuffix(file, ".go") + "_test.go"
	}
	return file
}

// finish checks and completes the module as a whole.
func (e *exporter) finish() (*Module, error) {
	m := e.module
	if err := e.picks.check(m.Notebook, e.all, e.cells); err != nil {
		return nil, err
	}
	if len(m.Cells) == 0 {
		return nil, e.noMain()
	}
	if err := e.session.params.Check(m.Notebook); err != nil {
		return nil, err
	}
	if err := e.moduleFiles(); err != nil {
		return nil, fmt.Errorf("export %s: %w", m.Notebook, err)
	}
	m.Imports = slices.Sorted(maps.Keys(e.imports))
	if e.Script {
		if err := m.checkScript(); err != nil {
			return nil, err
		}
	}
	if err := e.checkFrontEnd(); err != nil {
		return nil, err
	}
	m.Notes = e.session.notes
	slices.SortStableFunc(m.Notes, func(a, b nbcell.Note) int { return cmp.Or(a.Number-b.Number, a.Line-b.Line) })
	m.Warnings, m.Parameters = e.session.warnings, e.session.params.Declared
	m.Flags = e.session.flags.All(m.SourceDir, e.imports[input.TrainerPackage])
	return m, nil
}

// moduleFiles adds the resolved go.mod and go.sum, or else gonbatch's own.
func (e *exporter) moduleFiles() error {
	if e.Resolved.GoMod != nil {
		e.module.Files["go.mod"], e.module.Files["go.sum"] = e.Resolved.GoMod, e.Resolved.GoSum
		return nil
	}
	files, err := gomod.Files(e.mod, e.module.SourceDir)
	maps.Copy(e.module.Files, files)
	return err
}

// noMain returns the error for a notebook with nothing to run.
func (e *exporter) noMain() error {
	for _, cell := range e.cells {
		if cell.IsCode() && e.picks.leftOut(cell) {
			return fmt.Errorf("%s: no main cell is left without the cells tagged %s or %s; pick one of those with --cell",
				e.module.Notebook, nbcell.SkipTags[0], nbcell.SkipTags[1])
		}
	}
	return fmt.Errorf("%s: no main cell: start the cell to run with a line %%%%, or give it a func main", e.module.Notebook)
}

// checkFrontEnd refuses programs that would wait forever for an answer from a notebook's front end.
func (e *exporter) checkFrontEnd() error {
	for _, program := range e.module.Programs() {
		if call, at := pitfall.WaitingCall(string(e.module.Files[program.Source()])); call != "" {
			cell := e.cells[program.Number-1]
			if i := slices.IndexFunc(e.cells, func(c *nbcell.Cell) bool { return c.File == at.Filename }); i >= 0 {
				cell = e.cells[i]
			}
			return cell.Errorf(at.Line, "%s waits for the notebook's front end, and a job has none; tag the cells that use it notebook-only", call)
		}
	}
	return nil
}
