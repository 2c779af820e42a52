// Package result has what a run left behind as Go values: its metrics, its checkpoints, its images, its logs. In a notebook the magic
// "%result JOB as run" declares one; a program names the run directory:
//
//	run := result.At("runs/mnist-20261121-101500-4f2a")
//	fmt.Println(run.Last("test/accuracy"))
//	line, err := plotter.NewLine(run.Series("train/loss"))   // a series is a plotter.XYer
//	weights := run.Checkpoint().Path                         // the newest one
//
// Nothing is read before it is asked for, and each time again, so that a run which still goes on has what it has now. What can't be
// read is a panic that names the file: values are to be used as those of variables are. It changes nothing in a run directory.
package result
