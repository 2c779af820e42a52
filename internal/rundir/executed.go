package rundir

// Executed returns the path of the notebook with the output of its cells, written while the job
// runs.
func (d Dir) Executed() string { return d.join("executed.ipynb") }

// Submit returns the path of the run's own submit command, which runs the job and its ranks.
func (d Dir) Submit() string { return d.join("submit") }

// Result is the file in which the running program leaves the value of its last expression, for the
// executed notebook.
func (d Dir) Result() string { return d.join("shown.json") }

// Unrecorded is a mark that the executed notebook lacks some output.
func (d Dir) Unrecorded() string { return d.join("unrecorded") }
