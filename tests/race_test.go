package tests

import (
	"slices"
	"testing"

	"gonbatch/tests/jupyter"
)

// raced are the packages in which many goroutines share state: the kernel's, the watch over the
// ranks, and what follows a job.
var raced = []string{"./kernel/relay", "./kernel/widget", "./kernel/magic", "./kernel/wire", "./distributed/watch", "./logger", "./submit", "./submit/executed"}

// TestRace runs their tests once more, with the race detector.
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
