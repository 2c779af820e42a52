package rundir

// Executed returns the path of the notebook with the output of its cells, written while the job
// runs.
func (d Dir) Executed() string { return d.join("executed.ipynb") }

// Submit returns the path of the submit command that created the run. In the job it records rank
// 0's output.
func (d Dir) Submit() string { return d.join("submit") }

// RankScript returns the path of the script that starts a rank's program by exec, and passes rank
// 0's output to the recorder.
func (d Dir) RankScript() string { return d.join("rank.sh") }

// Result is the file in which the running program leaves the value of its last expression, for the
// executed notebook.
func (d Dir) Result() string { return d.join("shown.json") }

// Unrecorded is a mark that the executed notebook lacks some output.
func (d Dir) Unrecorded() string { return d.join("unrecorded") }
