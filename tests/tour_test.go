package tests

import (
	"regexp"
	"strings"
	"testing"

	"gonbatch/distributed/ranktest"
	"gonbatch/internal/rundir"
	"gonbatch/internal/tier"
	"gonbatch/tests/cluster"
)

// TestTour runs the tour as a job on this machine: the cells that submit are not part of it.
func TestTour(t *testing.T) {
	tier.Long(t)
	u := newUser(t, ranktest.QuickCompilation)
	out := u.mustSubmit(t, "--local", "--tasks", "2", example(t, "tour.ipynb"), "--", "-max_steps", "60")
	checkAnswers(t, out)
	run := u.run(t)
	checkTour(t, run)
	checkRecorded(t, run, 1)
}

// tourFromJupyter executes the tour in a real Jupyter client on a cluster's login node. It submits
// itself to two nodes, and reads the results.
func tourFromJupyter(t *testing.T, c *cluster.Cluster) {
	u := newUser(t, append(c.Env(), ranktest.QuickCompilation, "SUBMIT_CPUS_PER_TASK=1", "SUBMIT_MPI=pmix", "TRAINER_MAX_STEPS=60")...)
	result := u.execute(t, u.copyExample(t, "tour.ipynb"))
	if result.Error != "" {
		t.Fatalf("%s\n%s", result.Error, result.Log)
	}
	if n := len(result.Outputs); n != 9 {
		t.Fatalf("%d code cells, want 9", n)
	}
	checkAnswers(t, result.Outputs[3])
	for cell, wants := range map[int][]string{
		0: {"Hello from go1."},
		2: {"test/accuracy 0."},
		4: {"submitting this session: 4 cells", "run directory: ", "job "},
		5: {": completed", "test/accuracy 0."},
		6: {"gonbatch: rank 1 of 2", "on " + c.Nodes[1]},
		7: {"completed", "test/accuracy", "checkpoints/", "loss.png"},
		8: {"test accuracy of the job: 0."},
	} {
		wantAll(t, result.Outputs[cell], wants...)
	}
	checkShown(t, result, 0, 0, 0, 1, 0, 0, 0, 0, 1)
	checkTour(t, u.run(t))
}

// checkTour checks the training of a run of the tour, of 60 updates: its loss falls.
func checkTour(t *testing.T, run rundir.Dir) {
	t.Helper()
	all, err := rundir.ReadMetrics(run)
	if err != nil {
		t.Fatal(err)
	}
	var losses []float64
	for _, m := range all {
		if loss, ok := m.Values["train/loss"]; ok {
			losses = append(losses, float64(loss))
		}
		if value, ok := m.Values["test/accuracy"]; ok && (value < 0.8 || m.Step != 60) {
			t.Errorf("test accuracy %v after %d updates, want at least 0.8 after 60", value, m.Step)
		}
	}
	if len(losses) != 3 || losses[2] > losses[0]/2 {
		t.Errorf("train/loss %v, want 3 values that fall to less than half", losses)
	}
}

// answersLine matches what the network takes the first test images for.
var answersLine = regexp.MustCompile(`answers: \[([\d ]+)\]`)

// checkAnswers checks that one process printed the answers, most of which are right.
func checkAnswers(t *testing.T, out string) {
	t.Helper()
	lines := answersLine.FindAllStringSubmatch(out, -1)
	if len(lines) != 1 {
		t.Fatalf("%d lines of answers, want one, in\n%s", len(lines), out)
	}
	got := strings.Fields(lines[0][1])
	truth := strings.Fields("7 2 1 0 4 1 4 9 5 9 0 6") // The first labels of MNIST's test set.
	right := 0
	for i, answer := range got {
		if i < len(truth) && answer == truth[i] {
			right++
		}
	}
	if len(got) != len(truth) || right < 9 {
		t.Errorf("answers %v, want at least 9 of %v", got, truth)
	}
}
