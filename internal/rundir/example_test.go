package rundir_test

import (
	"fmt"
	"os"
	"time"

	"gonbatch/internal/rundir"
)

func ExampleCreate() {
	root, err := os.MkdirTemp("", "runs")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(root) //nolint:errcheck // a temporary folder
	dir, err := rundir.Create(root, "mnist", time.Date(2026, 11, 21, 10, 15, 0, 0, time.UTC))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(dir.Name()[:len("mnist-20261121-101500")])
	// Output: mnist-20261121-101500
}
