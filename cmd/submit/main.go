// Command submit runs a Go notebook as compiled programs: on a SLURM cluster, or on this machine.
//
//	submit --local notebooks/mnist.ipynb           # on this machine
//	submit --nodes 2 notebooks/mnist.ipynb         # on two nodes of a cluster
//	submit --nodes 2 -F train.ipynb -- -epochs 3   # passes flags to the notebook, and follows the job
//	submit status
//
// It connects gonbatch's packages. Tests call execute as main does.
package main

import (
	"context"
	"os"
)

func main() {
	a := newApp()
	a.Self, _ = os.Executable() // Without it, imports are looked for from the current folder.
	os.Exit(execute(context.Background(), a, os.Args[1:]))
}
