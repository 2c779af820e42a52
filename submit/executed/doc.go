// Package executed writes executed.ipynb while the job runs: the notebook as if it had been
// executed in Jupyter, with each cell's text, rich output, errors and times. It knows nothing about
// schedulers and starts no program.
//
// Prepare creates the notebook at the beginning of a run. A Recorder fills it:
//
//	recorder, err := executed.Open(dir, time.Now)
//	server, err := executed.Listen("/tmp/x/socket", recorder, report)
//	...                                                         // the programs run
//	err = server.End(executed.Outcome{Code: 0})
//
// A program connects to the server through Attach, which creates pipes for its output, passes their
// other ends to the recorder, and becomes the program:
//
//	err := executed.Attach("/tmp/x/socket", []string{"bin/train"}, os.Environ(), nil) // returns on failure only
//
// In a job, scripts call these functions as `submit recorder`, through Command.
//
// The recorder also appends all text to the rank's log; the notebook has only the beginning and the
// end of very long outputs. docs/adr/0007-who-writes-the-executed-notebook.md explains the design.
package executed
