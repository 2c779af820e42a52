package rundir

import (
	"cmp"
	"strconv"
)

// Cell is a cell of a job: one program, or one shell command. The export creates it from a cell of
// the notebook, the schedulers start it, and the run records it.
type Cell struct {
	Name string `json:"name"`
	// Number is the number of the notebook's cell, from 1, and ID its id. Line is the line of a
	// shell command in it, and Title a short form of the command.
	Number int `json:"number,omitempty"`
	// Alias is the cell's label in the notebook of a kernel's session, if it isn't the number.
	Alias string `json:"alias,omitempty"`
	ID    string `json:"id,omitempty"`
	Line  int    `json:"line,omitempty"`
	Title string `json:"title,omitempty"`
	// Shell marks a shell command, and Test a program that runs the tests of a %test cell.
	Shell bool `json:"shell,omitempty"`
	Test  bool `json:"test,omitempty"`
	// Once marks a cell that runs once, on the first node, and not on every rank.
	Once bool `json:"once,omitempty"`
	// MayFail makes the job continue after the cell, however the cell ends.
	MayFail bool `json:"may_fail,omitempty"`
	// Capture is the file that gets a copy of rank 0's output; "" if there is none.
	Capture string `json:"capture,omitempty"`
	// Args are the cell's own arguments from the notebook.
	Args []string `json:"args,omitempty"`
	// Env is set for this cell only.
	Env map[string]string `json:"env,omitempty"`
	// Dir is the cell's working directory: absolute, "~/..." or relative to the notebook's folder.
	// If it is "", the job's is used.
	Dir string `json:"dir,omitempty"`
	// BuildFlags are the flags for go build from %goflags.
	BuildFlags []string `json:"build_flags,omitempty"`
	// SHA256 is the hash of the program, or of a shell command's script, once it is staged.
	SHA256 string `json:"sha256,omitempty"`
}

// Script returns the file name of the script that starts the cell: a shell command, or a program
// that runs once, may fail or has its output captured. It returns "" for a program that is started
// directly.
func (c Cell) Script() string {
	if c.Once || c.MayFail || c.Capture != "" {
		return c.Name + ".sh"
	}
	return ""
}

// Source returns the path of the program's main source file in the exported module.
func (c Cell) Source() string {
	if c.Test {
		return c.Name + "/main_test.go"
	}
	return c.Name + "/main.go"
}

// CellProgram returns the file in the run directory that starts the cell.
func (d Dir) CellProgram(c Cell) string {
	if script := c.Script(); script != "" {
		return d.Program(script)
	}
	return d.Program(c.Name)
}

// TakesArgs reports whether the cell gets the job's arguments after its own.
func (c Cell) TakesArgs() bool { return !c.Shell && !c.Test }

// Label returns what messages call the notebook's cell after the word "cell".
func (c Cell) Label() string { return cmp.Or(c.Alias, strconv.Itoa(c.Number)) }
