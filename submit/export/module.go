package export

import (
	"maps"
	"slices"
)

// Module is an exported notebook: a Go module, ready to be written and built.
type Module struct {
	// Notebook is the notebook's file name, as directives and errors have it.
	Notebook string
	// Files are the module's files by slash-separated path: go.mod, go.sum, <step>/main.go,
	// <step>/main_test.go, <step>.sh, and files that programs embed.
	Files map[string][]byte
	// Steps are the programs and shell commands, in the order in which they run.
	Steps []Step
	// Imports are the import paths of all programs, sorted.
	Imports []string
	// ImportSites say which cell an import path comes from; those that no cell wrote are not in it.
	ImportSites map[string]Site
	// Cells are the notebook's code cells by the name that they have in //line directives.
	Cells map[string]CellSource
	// Warnings say what the programs lack, in the notebook's order.
	Warnings []Note
	// Notes say what works but may not be what was meant.
	Notes []Note
	// Parameters are what the cells tagged parameters declare, and Flags those that the cells
	// define.
	Parameters []Parameter
	Flags      []Flag
	// SourceDir is gonbatch's own source tree, which go.mod's replace line names.
	SourceDir string
	// ChangesModules is set if the notebook itself requires or replaces modules (!*go get, !*go
	// mod edit), so go.sum may lack some.
	ChangesModules bool
}

// Step is a program of the module, made from a main cell, or a shell command of a cell.
type Step struct {
	// Name is the step's name; Package is its folder in the module, "" for a shell command.
	Name, Package string
	// Test is set for a %test cell: the program runs tests, and its source is a test file.
	Test bool
	// Once is set if the step runs once, on the first node, and not on every rank.
	Once bool
	// MayFail is set if the job continues even if the step fails.
	MayFail bool
	// Cell is the main cell's number, from 1, and CellID its id.
	Cell   int
	CellID string
	// Args are the program's arguments as the cell's %args, %% or %exec line has them.
	Args []string
	// Env is what %env has set up to the cell.
	Env map[string]string
	// Dir is the program's working directory as %cd has it: absolute, "~/..." or relative to the
	// notebook's folder; "" is the notebook's folder.
	Dir string
	// BuildFlags are %goflags' flags for go build.
	BuildFlags []string
	// Script is a shell command's script in the module, or the script that starts the program of a
	// step that is Once or MayFail; "" for a program that is started by itself.
	Script string
	// Line and Title are the place of a shell command in its cell, and the command in short.
	Line  int
	Title string
}

// IsShell reports whether the step is a shell command, not a program.
func (s Step) IsShell() bool { return s.Package == "" }

// File is the program's source in the module.
func (s Step) File() string {
	if s.Test {
		return s.Package + "/main_test.go"
	}
	return s.Package + "/main.go"
}

// Site is a place in a cell.
type Site struct {
	CellRef
	// Line is the line in the cell, from 1.
	Line int
}

// CellSource is a code cell's text, for messages that quote it.
type CellSource struct {
	CellRef
	Source string
}

// Programs are the steps that are compiled.
func (m *Module) Programs() []Step {
	return slices.DeleteFunc(slices.Clone(m.Steps), Step.IsShell)
}

// StepNames are the steps' names in order.
func (m *Module) StepNames() []string { return stepNames(m.Steps) }

func stepNames(steps []Step) []string {
	names := make([]string, len(steps))
	for i, step := range steps {
		names[i] = step.Name
	}
	return names
}

// FileNames are the names of the module's files, sorted.
func (m *Module) FileNames() []string { return slices.Sorted(maps.Keys(m.Files)) }
