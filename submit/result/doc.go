// Package result provides the results of a run as Go values: its metrics, checkpoints, images and
// logs. In a notebook, the magic "%result RUN as run" declares one. A program names the run
// directory:
//
//	run := result.At("runs/mnist-20261121-101500-4f2a")
//	fmt.Println(run.Last("test/accuracy"))
//	line, err := plotter.NewLine(run.Series("train/loss"))   // a series is a plotter.XYer
//	weights := run.Checkpoint().Path                         // the newest one
//	run.Params()["learning_rate"]                            // a hyper-parameter
//	result.Compare(result.Find("runs/mnist-*")...)           // a table: what differs, metrics
//
// In a job, Current returns the job's own run.
//
// Each method reads the files when it is called, so a run that is still active has its current
// values. A method panics if it can't read a file, and names it; so its values can be used in
// expressions. The package changes nothing in a run directory.
package result
