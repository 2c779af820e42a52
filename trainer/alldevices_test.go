package trainer_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"gonbatch/data"
	"gonbatch/distributed"
	"gonbatch/distributed/ranktest"
	"gonbatch/internal/rundir"
	"gonbatch/trainer"
)

// TestAllDevices: with GONBATCH_DEVICES=all, random programs whose batches have any size, and that
// evaluate and predict in any order, leave the same weights and metrics as on one device.
func TestAllDevices(t *testing.T) {
	if !ranktest.InRank() {
		if out, err := ranktest.Start(t, ranktest.Torchrun, 1, []string{"GONBATCH_DEVICES=all"}); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	for seed := range uint64(seeds(t, 10)) {
		folder := t.TempDir()
		got, refused := onDevices(t, "all", folder+"/all", seed, nil)
		want, _ := onDevices(t, "1", folder+"/one", seed, refused)
		if len(got) != len(want) {
			t.Fatalf("seed %d: %d numbers, want %d", seed, len(got), len(want))
		}
		if d := distance(got, want); !(d < 1e-3) {
			t.Errorf("seed %d: %d numbers differ by %g", seed, len(got), d)
		}
	}
}

// onDevices runs the random program of a seed in a world of its own. It returns all its numbers,
// and which of its trainers were refused, because an earlier one uses more devices.
func onDevices(t *testing.T, devices, folder string, seed uint64, skip map[int]bool) (numbers []float64, refused map[int]bool) {
	t.Helper()
	getenv := func(name string) string {
		if name == rundir.EnvDevices {
			return devices
		}
		return os.Getenv(name)
	}
	w, err := distributed.InitWith(t.Context(), distributed.Config{Getenv: getenv, Out: io.Discard, Log: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}()
	rng, refused := rand.New(rand.NewPCG(seed, 7)), map[int]bool{}
	for i := range 1 + rng.IntN(4) {
		training := drawTraining(t, rng, folder, i)
		if skip[i] {
			continue
		}
		more, ok := training.run(t, w)
		if t.Failed() {
			t.Fatalf("seed %d, %s devices: %+v", seed, devices, training)
		}
		numbers, refused[i] = append(numbers, more...), !ok
	}
	return numbers, refused
}

// randomTraining is a trainer of a random program.
type randomTraining struct {
	config   trainer.Config
	data     data.Dataset
	examples int
	stages   []int
}

func drawTraining(t *testing.T, rng *rand.Rand, folder string, i int) randomTraining {
	t.Helper()
	c := trainer.Config{
		BatchSize: 1 + rng.IntN(20), EvalBatchSize: 1 + rng.IntN(20), MaxSteps: 3 * (i + 1), MaxEpochs: 9, Seed: 3, Loggers: []string{"none"},
		DropLast: new(rng.IntN(2) == 0), Checkpoint: trainer.CheckpointConfig{Dir: fmt.Sprint(folder, i), Off: rng.IntN(2) == 0},
	}
	examples := 20 + rng.IntN(30)
	r := randomTraining{c, ranktest.Blobs(examples), examples, rng.Perm(4)}
	lanes := 1 + rng.IntN(c.BatchSize)
	for c.BatchSize%lanes != 0 {
		lanes--
	}
	if rng.IntN(3) == 0 {
		stream, err := data.FromStream(blobStream{parts: []int{50, 9, 41, 8}}, data.StreamConfig{Examples: 60, Buffer: 50, Lanes: lanes})
		if err != nil {
			t.Fatal(err)
		}
		r.data = stream
	}
	return r
}

// run trains and evaluates in a random order. It returns the metrics and the weights, unless an
// earlier trainer uses more devices.
func (r randomTraining) run(t *testing.T, w *distributed.World) (numbers []float64, ok bool) {
	t.Helper()
	trainer.NewProcess()
	tr, err := trainer.New(w, r.config, blobTask(plainNet), trainer.WithOutput(io.Discard))
	if err != nil {
		t.Error(err)
		return nil, false
	}
	for _, stage := range r.stages {
		var metrics trainer.Metrics
		switch stage {
		case 0:
			err = tr.Fit(t.Context(), r.data, ranktest.Blobs(r.examples))
			if err != nil && strings.Contains(err.Error(), "their number stays: set GONBATCH_DEVICES=") {
				return nil, false
			}
		case 1:
			metrics, err = tr.Test(t.Context(), ranktest.Blobs(r.examples+3))
		default:
			metrics, err = tr.Validate(t.Context(), ranktest.Blobs(r.examples))
		}
		if err != nil {
			t.Error(err)
			return nil, false
		}
		numbers = append(numbers, metrics["test/loss"], metrics["val/loss"], metrics["val/accuracy"])
	}
	return append(numbers, trainedFloats(t, tr, "/")...), true
}
