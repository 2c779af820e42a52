package rundir

// Executed is the notebook with what its cells have put out, written as the job runs.
func (d Dir) Executed() string { return d.join("executed.ipynb") }

// Submit is the submit command that made the run: in the job it records what rank 0 puts out.
func (d Dir) Submit() string { return d.join("submit") }

// RankScript is the script that becomes a rank's program, and leads rank 0's output to the
// recorder.
func (d Dir) RankScript() string { return d.join("rank.sh") }

// Unrecorded is a mark: something was put out that the executed notebook lacks.
func (d Dir) Unrecorded() string { return d.join("unrecorded") }
