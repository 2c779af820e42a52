package rundir

// Step is one program of a job, or one shell command. It is the same from the notebook's cell to
// the run directory: the export makes it, the schedulers start it, and the run keeps it.
type Step struct {
	Name string `json:"name"`
	// Cell is the number of the cell that the step comes from, from 1, and CellID its id. Line is
	// the place of a shell command in its cell, and Title the command in short.
	Cell   int    `json:"cell,omitempty"`
	CellID string `json:"cell_id,omitempty"`
	Line   int    `json:"line,omitempty"`
	Title  string `json:"title,omitempty"`
	// Shell marks a shell command, and Test a program that runs the tests of a %test cell.
	Shell bool `json:"shell,omitempty"`
	Test  bool `json:"test,omitempty"`
	// Once marks a step that runs once, on the first node, and not on every rank.
	Once bool `json:"once,omitempty"`
	// MayFail has the job continue after the step, however that ends.
	MayFail bool `json:"may_fail,omitempty"`
	// Capture is the file that gets a copy of rank 0's output; "" is none.
	Capture string `json:"capture,omitempty"`
	// Args are the step's own arguments, as the cell has them.
	Args []string `json:"args,omitempty"`
	// Env is set for this step only.
	Env map[string]string `json:"env,omitempty"`
	// Dir is the step's working directory: absolute, "~/..." or relative to the notebook's folder.
	// "" is the job's.
	Dir string `json:"dir,omitempty"`
	// BuildFlags are %goflags' flags for go build.
	BuildFlags []string `json:"build_flags,omitempty"`
	// SHA256 is the hash of the program, or of a shell command's script, once it is staged.
	SHA256 string `json:"sha256,omitempty"`
}

// Script is the file name of the script that starts the step: a shell command, or a program that
// runs once, may fail or has its output captured. It is "" for a program that is started directly.
func (s Step) Script() string {
	if s.Once || s.MayFail || s.Capture != "" {
		return s.Name + ".sh"
	}
	return ""
}

// Source is the program's main source in the exported module.
func (s Step) Source() string {
	if s.Test {
		return s.Name + "/main_test.go"
	}
	return s.Name + "/main.go"
}

// StepProgram is the file in the run directory that starts the step.
func (d Dir) StepProgram(s Step) string {
	if script := s.Script(); script != "" {
		return d.Program(script)
	}
	return d.Program(s.Name)
}

// TakesArgs reports whether the step gets the job's arguments after its own.
func (s Step) TakesArgs() bool { return !s.Shell && !s.Test }
