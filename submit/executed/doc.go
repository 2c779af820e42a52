// Package executed writes executed.ipynb: the notebook as if it had been executed in Jupyter, with
// the text, the rich output, the errors and the times of each cell, while its job runs. It knows
// nothing of schedulers and starts no program.
//
// Prepare makes the notebook of a run that begins. A Recorder fills it:
//
//	recorder, err := executed.Open(dir, time.Now)
//	server, err := executed.Listen("/tmp/x/socket", recorder, report)
//	...                                                         // the programs run
//	err = server.End(executed.Outcome{Code: 0})
//
// A program gets to the server by Attach, which makes pipes of its output, hands their other ends
// to the recorder, and becomes the program:
//
//	err := executed.Attach("/tmp/x/socket", []string{"bin/train", "-epochs", "3"}, os.Environ()) // returns on failure only
//
// What the recorder gets it also appends to the rank's log, which has all of it; the notebook has
// the beginning and the end of very long outputs. docs/adr/0007-who-writes-the-executed-notebook.md
// says why it is done in this way.
package executed
