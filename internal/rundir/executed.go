package rundir

// Executed is the notebook with the output of its cells, written as the job runs.
func (d Dir) Executed() string { return d.join("executed.ipynb") }

// Submit is the submit command that made the run. In the job it records rank 0's output.
func (d Dir) Submit() string { return d.join("submit") }

// RankScript is the script that becomes a rank's program, and passes rank 0's output to the
// recorder.
func (d Dir) RankScript() string { return d.join("rank.sh") }

// Unrecorded is a mark: the executed notebook lacks some output.
func (d Dir) Unrecorded() string { return d.join("unrecorded") }
