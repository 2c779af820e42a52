package tests

import (
	"fmt"
	"testing"
)

// TestLocalMNIST is the first thing that a newcomer does: all devices of this machine, by XLA's own sharding.
func TestLocalMNIST(t *testing.T) {
	u := newUser(t)
	out := u.mustSubmit(t, "--local", mnist(t))
	if got := accuracy(t, out); got < 0.985 {
		t.Errorf("test accuracy %.4f, want at least 0.985:\n%s", got, out)
	}
	run := u.run(t)
	wantAll(t, out, "epoch 2/2  step 937/937", run.Path(), "metrics", "checkpoint")
	wantAll(t, read(t, run.RankLog(0)), "epoch 2/2  step 937/937")
	wantAll(t, read(t, run.Metrics()), `"step":1874`)
}

// TestLocalRanks runs two ranks by mpirun.
func TestLocalRanks(t *testing.T) {
	u := newUser(t)
	out := u.mustSubmit(t, "--local", "--tasks", "2", mnist(t), "--", "-epochs", "1")
	if got := accuracy(t, out); got < 0.97 {
		t.Errorf("test accuracy %.4f after one epoch:\n%s", got, out)
	}
	run := u.run(t)
	for rank := range 2 {
		wantAll(t, read(t, run.RankLog(rank)), fmt.Sprintf("gonbatch: rank %d of 2", rank))
	}
}
