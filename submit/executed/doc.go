// Package executed writes executed.ipynb while the job runs: the notebook as if it had been
// executed in Jupyter, with each cell's text, rich output, errors and times. It knows nothing about
// schedulers and starts no program.
//
// Prepare creates the notebook at the beginning of a run. A Recording fills it:
//
//	recording, err := executed.Record(shell, dir, jobID)
//	...                                                // the programs run
//	err = recording.End(executed.Outcome{Code: 0})
//
// The process that starts a program calls Attach, which makes pipes for the program's output, and
// passes their other ends to the recording through its socket.
//
// The recorder also appends all text to the rank's log; the notebook has only the beginning and the
// end of very long outputs. docs/adr/0007-who-writes-the-executed-notebook.md explains the design.
package executed
