// Package rundir is the only package that knows the names of the files in a run directory, and the
// environment variables that begin with GONBATCH_. A run directory holds everything that a
// submitted notebook needs and writes. The package neither starts jobs nor trains: it is what both
// sides share.
//
//	runs/mnist-20261121-101500-4f2a/
//	  manifest.json       hashes, git commit, command line, versions, job id, state
//	  notebook.ipynb      the notebook as submitted
//	  executed.ipynb      the notebook with the output of its cells
//	  submit              runs the job and its ranks
//	  sources/            the exported Go module
//	  bin/<cell>          one program for each main cell, one script <cell>.sh for each shell command
//	  plugins/            the XLA plugin, and oneDNN
//	  job.sh              the batch script
//	  job.json            the job as it was submitted, for "submit resume"
//	  exit-status         job id and exit code, written by the job as it ends
//	  ending              job id and how the scheduler ended the job, written by the job
//	  starts              a line for each start of the run, with its job and cluster
//	  progress            the last update that the training has reported
//	  deaths              a line for each start whose rank died
//	  lock                exists while a command starts or ends the run
//	  shown.json          the value of a program's last expression, until it is in executed.ipynb
//	  unrecorded          a mark: executed.ipynb lacks output
//	  kept/<cell>/        the values of %keep, as each cell left them
//	  ends/<n>/<cell>/    how each rank of the cell ended in start n
//	  finished/<cell>     a mark for each cell that ended well, which no later start runs again
//	  logs/scheduler.log  the job's own output
//	  logs/rank-<n>.log   one log per rank, all cells in order
//	  metrics.jsonl       one JSON object per line, written by rank 0
//	  metrics.csv         the same as a table
//	  tensorboard/        event files
//	  traces/             what the ranks did in some updates
//	  curves/             drawn metrics and images
//	  hyperparameters/    a file for each training run
//	  mlflow-runs/        the ids of the runs in MLflow
//	  checkpoints/        written by rank 0
//	  failure.json        why the run failed, written once by the ranks
//	  stacks/rank-<n>.txt each rank's goroutines, where one was stuck
//
// The submitting side creates one:
//
//	dir, err := rundir.Create("runs", "mnist", time.Now())
//	err = rundir.Manifest{Name: dir.Name()}.Write(dir)
//
// A running program finds it:
//
//	if env := rundir.ReadEnv(os.Getenv); env.InRun() {
//		f, err := os.Create(env.Dir.Metrics())
//	}
package rundir
