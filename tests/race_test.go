package tests

import (
	"slices"
	"testing"

	"gonbatch/tests/jupyter"
)

// raced lists packages in which goroutines share state: those of the kernel, the ring and the
// watch of the ranks, the loading of batches, the loggers, and what follows and records a job.
var raced = []string{"./kernel/relay", "./kernel/widget", "./kernel/magic", "./kernel/wire", "./distributed/tcp", "./distributed/watch", "./data/load", "./data/lane", "./logger", "./submit", "./submit/executed"}

// TestRace runs the tests of these packages again, with the race detector.
func TestRace(t *testing.T) {
	root, err := jupyter.Root()
	if err != nil {
		t.Fatal(err)
	}
	args := slices.Concat([]string{"test", "-race", "-short"}, raced)
	if out, err := command(root, "go", args...).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
