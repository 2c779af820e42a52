// Package run submits notebooks and manages their runs: it starts, follows, cancels and resumes
// them, and records how they end. It uses a submit.Scheduler for everything that differs between
// clusters and this machine. It reads no flags: package main of cmd/submit turns them into a
// Request and makes one call.
//
//	runs := &run.Runs{Shell: shell, Root: "runs", Schedulers: []submit.Scheduler{slurm.New(shell), local.New(shell, run.Locate)}}
//	err := runs.Submit(ctx, run.Request{Path: "mnist.ipynb", Job: spec, Scheduler: runs.Schedulers[0]})
package run
