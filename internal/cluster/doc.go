// Package cluster finds out a process's place in a distributed job: its rank, the world size, its
// local rank, and who started it. It is the only place that knows the variables with which
// launchers number their ranks, and batch systems describe a job: programs call Detect, and scripts
// use the text of Shell.
//
// It only reads environment variables. It starts nothing, and moves no data.
//
//	env, err := cluster.Detect(os.Getenv)
//	fmt.Println(env) // rank 3 of 4 (local rank 1), started by slurm
package cluster
