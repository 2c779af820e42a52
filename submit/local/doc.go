// Package local runs a job's cells on this machine: one rank directly, several through mpirun or,
// where there is none, over TCP. It is not a batch system: Run blocks until the last cell has
// ended.
//
//	runner := local.Runner{Out: os.Stdout, Err: os.Stderr}
//	err := runner.Run(ctx, spec) // spec.Nodes is 1, spec.TasksPerNode the number of ranks
//
// When ctx ends, the process group of the running cell gets a signal, and no process outlives Run.
package local
