// Command submit runs a Go notebook as compiled programs: on a SLURM cluster, or on this machine.
//
//	submit --local notebooks/mnist.ipynb           # on this machine
//	submit --nodes 2 notebooks/mnist.ipynb         # on two nodes of a cluster
//	submit --nodes 2 -F train.ipynb -- -epochs 3   # passes flags to the notebook, and follows the job
//	submit logs -f 4711
//	submit status
//	submit cancel 4711
//
// It is the only place that wires gonbatch's packages together: each command is a struct of options
// and a function run(ctx, app, options), which the tests call as main does.
package main

import (
	"context"
	"os"
)

func main() {
	os.Exit(execute(context.Background(), newApp(), os.Args[1:]))
}
