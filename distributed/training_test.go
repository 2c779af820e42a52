package distributed_test

import (
	"bytes"
	"encoding/gob"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/layers/activation"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train"
	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/gomlx/gomlx/ml/train/metric"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"gonbatch/distributed"
	"gonbatch/distributed/ranktest"
)

func smallNet(scope *model.Scope, x *graph.Node) *graph.Node {
	x = activation.Relu(layers.Convolution(scope.In("conv"), x).Channels(4).KernelSize(3).PadSame().Done())
	x = graph.Reshape(x, x.Shape().Dimensions[0], -1)
	x = activation.Relu(layers.Dense(scope.In("hidden"), x, true, 16))
	return layers.Dense(scope.In("logits"), x, true, ranktest.Classes)
}

func newTrainer(w *distributed.World, seed int64) *train.Trainer {
	store := model.NewStore()
	store.SetParam("/"+model.ParamInitialSeed, seed)
	sgd := w.Optimizer(optimizer.StochasticGradientDescent().WithLearningRate(0.05).WithDecay(false).Done())
	accuracy := metric.NewSparseCategoricalAccuracy("Mean Accuracy", "#acc")
	return train.NewTrainer(w.Backend(), store, smallNet, loss.SparseCategoricalCrossEntropyLogits, sgd, nil, []metric.Interface{accuracy})
}

// epoch trains for one epoch.
func epoch(w *distributed.World, trainer *train.Trainer, l distributed.Loader) error {
	for metrics, err := range w.TrainSteps(trainer, l, nil) {
		if err != nil {
			return err
		}
		for _, m := range metrics {
			if err := m.FinalizeAll(); err != nil {
				return err
			}
		}
	}
	return nil
}

func initWorld(t *testing.T) *distributed.World {
	t.Helper()
	w, err := distributed.Init()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// outcome is the result of a run: all trained weights, and the metrics of an evaluation.
type outcome struct {
	Weights map[string][]float32
	Metrics distributed.Metrics
}

const steps = 50

// trainRank is the body of a rank: 50 steps of plain gradient descent at a global batch of 12.
func trainRank(t *testing.T) {
	w := initWorld(t)
	if limit, err := strconv.Atoi(os.Getenv("BUCKET_BYTES")); err == nil {
		distributed.SetBucketBytes(limit)
	}
	// An epoch has 12 steps and a remainder. The number of evaluated examples, 103, is prime.
	loader, err := w.Loader(ranktest.Blobs(145), distributed.LoaderOptions{BatchSize: 12, Shuffle: true, Seed: 5})
	if err != nil {
		t.Fatal(err)
	}
	seed := int64(42)
	if os.Getenv("SEED_BY_RANK") != "" {
		seed += int64(w.Rank())
	}
	trainer := newTrainer(w, seed)
	for done := 0; done < steps; done += loader.Steps() {
		if err := epoch(w, trainer, loader); err != nil {
			t.Fatal(err)
		}
	}
	metrics, err := w.Evaluate(t.Context(), trainer, ranktest.Blobs(103), 10)
	if err != nil {
		t.Fatal(err)
	}
	if w.IsMain() {
		writeOutcome(t, outcome{weights(t, trainer.Store()), metrics})
	}
}

func weights(t *testing.T, store *model.Store) map[string][]float32 {
	t.Helper()
	all := map[string][]float32{}
	for v := range store.IterVariables() {
		if v.Trainable {
			all[v.Path()] = tensors.MustCopyFlatData[float32](v.MustValue())
		}
	}
	return all
}

func writeOutcome(t *testing.T, o outcome) {
	t.Helper()
	f, err := os.Create(os.Getenv("OUTCOME"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(gob.NewEncoder(f).Encode(o), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// run runs this test on n ranks and reads what rank 0 wrote.
func run(t *testing.T, launcher ranktest.Launcher, n int, env ...string) (outcome, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "outcome")
	out, err := ranktest.Start(t, launcher, n, append(env, "OUTCOME="+path))
	if err != nil {
		t.Fatalf("%d ranks: %v\n%s", n, err, out)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var o outcome
	if err := gob.NewDecoder(bytes.NewReader(data)).Decode(&o); err != nil {
		t.Fatal(err)
	}
	return o, out
}

// TestEquivalence: with the same global batch size, the weights and metrics are the same on any
// number of ranks and devices.
func TestEquivalence(t *testing.T) {
	if ranktest.InRank() {
		trainRank(t)
		return
	}
	want, _ := run(t, ranktest.OpenMPI, 1)
	if accuracy, _ := want.Metrics.Get("Mean Accuracy"); accuracy < 0.9 {
		t.Errorf("one rank learnt nothing: %s", want.Metrics)
	}
	tests := []struct {
		name     string
		launcher ranktest.Launcher
		ranks    int
		env      []string
	}{
		{"2 ranks, Open MPI", ranktest.OpenMPI, 2, nil},
		{"3 ranks, Open MPI", ranktest.OpenMPI, 3, nil},
		{"2 ranks, MPICH", ranktest.MPICH, 2, nil},
		{"3 ranks over TCP", ranktest.Torchrun, 3, nil},
		{"1 rank on a GPU", ranktest.Torchrun.OnGPUs(t, 1), 1, nil},
		{"2 ranks on GPUs", ranktest.OpenMPI.OnGPUs(t, 4), 2, nil},
		{"3 ranks on GPUs", ranktest.MPICH.OnGPUs(t, 3), 3, nil},
		{"4 ranks on GPUs, over TCP", ranktest.Torchrun.OnGPUs(t, 4), 4, nil},
		{"2 ranks, all-reduces of up to 1 KiB", ranktest.OpenMPI, 2, []string{"BUCKET_BYTES=1024"}},
		{"3 ranks over TCP, an all-reduce for each variable", ranktest.Torchrun, 3, []string{"BUCKET_BYTES=1"}},
		{"2 ranks, gradients that travel", ranktest.OpenMPI, 2, travelling},
		{"3 ranks, gradients that travel", ranktest.MPICH, 3, travelling},
		{"3 ranks over TCP, gradients that travel", ranktest.Torchrun, 3, travelling},
		{"2 ranks on GPUs, all-reduces of up to 1 KiB", ranktest.Torchrun.OnGPUs(t, 2), 2, []string{"BUCKET_BYTES=1024"}},
		{"2 devices of one process", ranktest.OpenMPI, 1, []string{"GONBATCH_DEVICES=2"}},
		{"3 devices of one process", ranktest.OpenMPI, 1, []string{"GONBATCH_DEVICES=3"}},
		{"2 ranks with other seeds start from rank 0's weights", ranktest.OpenMPI, 2, []string{"SEED_BY_RANK=1"}},
		{"2 ranks on GPUs with other seeds", ranktest.Torchrun.OnGPUs(t, 2), 2, []string{"SEED_BY_RANK=1"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, _ := run(t, test.launcher, test.ranks, test.env...)
			compare(t, got, want)
		})
	}
}

func compare(t *testing.T, got, want outcome) {
	t.Helper()
	if len(got.Weights) != len(want.Weights) || len(want.Weights) != 6 {
		t.Fatalf("%d variables against %d, want 6", len(got.Weights), len(want.Weights))
	}
	for path, values := range want.Weights {
		var difference, norm float64
		for i, value := range values {
			difference += math.Pow(float64(got.Weights[path][i]-value), 2)
			norm += math.Pow(float64(value), 2)
		}
		if relative := math.Sqrt(difference / norm); !(relative <= 1e-5) {
			t.Errorf("%s: relative difference %.2g", path, relative)
		}
	}
	for i, m := range want.Metrics {
		if !(math.Abs(got.Metrics[i].Value-m.Value) <= 1e-4*math.Abs(m.Value)) {
			t.Errorf("%s: got %v, want %v", m.Name, got.Metrics[i].Value, m.Value)
		}
	}
}

// TestOneProgram: the collective is part of the compiled training step.
func TestOneProgram(t *testing.T) {
	if ranktest.InRank() {
		trainRank(t)
		return
	}
	dump := t.TempDir()
	run(t, ranktest.OpenMPI, 2, "XLA_FLAGS=--xla_dump_to="+dump+" --xla_dump_hlo_as_text")
	files, err := filepath.Glob(filepath.Join(dump, "*after_optimizations.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("XLA dumped no programs: %v", err)
	}
	call := regexp.MustCompile(`custom-call\(.*custom_call_target="gonbatch_collective_2_over_2"`)
	var with []string
	for _, file := range files {
		if strings.Contains(file, "gonbatch_probe") {
			continue // The minimal program with a collective that tests the plugin.
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if n := len(call.FindAll(text, -1)); n > 0 {
			with = append(with, fmt.Sprintf("%s: %d", filepath.Base(file), n))
			for _, part := range []string{"convolution", "dot("} {
				if !strings.Contains(string(text), part) {
					t.Errorf("the program with the collective has no %s: it is not the training step", part)
				}
			}
		}
	}
	// Both ranks dump to the same folder, where equal programs may overwrite each other's files.
	if len(with) < 1 || len(with) > 2 {
		t.Fatalf("programs with a collective: %v, want the training step alone", with)
	}
	for _, program := range with {
		if !strings.HasSuffix(program, ": 1") {
			t.Errorf("%s collectives in one program, want 1", program)
		}
	}
}

// TestRunDirectory: in a run, each rank prints once where it runs.
func TestRunDirectory(t *testing.T) {
	if ranktest.InRank() {
		initWorld(t)
		return
	}
	out, err := ranktest.Start(t, ranktest.OpenMPI, 2, []string{"GONBATCH_RUN_DIR=" + t.TempDir()})
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, rank := range []string{"rank 0 of 2", "rank 1 of 2"} {
		if strings.Count(out, "gonbatch: "+rank) != 1 {
			t.Errorf("%s did not print once where it runs:\n%s", rank, out)
		}
	}
}

// TestForgottenOptimizer: ranks that train each for itself are told, once; those that average are
// not.
func TestForgottenOptimizer(t *testing.T) {
	if ranktest.InRank() {
		w := initWorld(t)
		l, err := w.Loader(ranktest.Blobs(48), distributed.LoaderOptions{BatchSize: 12})
		if err != nil {
			t.Fatal(err)
		}
		trainer := newTrainer(w, 1)
		if os.Getenv("TEST_FORGOTTEN") != "" {
			plain := optimizer.StochasticGradientDescent().WithLearningRate(0.05).WithDecay(false).Done()
			trainer = train.NewTrainer(w.Backend(), model.NewStore(), smallNet, loss.SparseCategoricalCrossEntropyLogits, plain, nil, nil)
		}
		for range 2 {
			if err := epoch(w, trainer, l); err != nil {
				t.Fatal(err)
			}
		}
		return
	}
	for forgotten, want := range map[string]int{"": 0, "1": 1} {
		out, err := ranktest.Start(t, ranktest.Torchrun, 2, []string{"GONBATCH_DEVICES=1", "TEST_FORGOTTEN=" + forgotten})
		if n := strings.Count(out, "no gradients have been averaged"); err != nil || n != want {
			t.Errorf("forgotten %q: %d warnings, want %d; %v\n%s", forgotten, n, want, err, out)
		}
	}
}
