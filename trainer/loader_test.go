package trainer_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/data"
	"gonbatch/data/load"
	"gonbatch/distributed/ranktest"
	"gonbatch/internal/tier"
	"gonbatch/trainer"
)

// observed is a dataset that counts its calls, and calls a function first.
type observed struct {
	data.Dataset
	before        func(call int, indices []int)
	mu            sync.Mutex
	calls, inside int
}

func observe(ds data.Dataset, before func(call int, indices []int)) *observed {
	return &observed{Dataset: ds, before: before}
}

func (o *observed) Batch(indices []int) (inputs, labels []*tensors.Tensor, err error) {
	o.mu.Lock()
	call := o.calls
	o.calls++
	o.inside++
	o.mu.Unlock()
	defer func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.inside--
	}()
	o.before(call, indices)
	return o.Dataset.Batch(indices)
}

// count returns the number of calls that have begun, and of those that have not ended.
func (o *observed) count() (calls, inside int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.calls, o.inside
}

// TestLoadsDuringSteps: the next batches, also those of the next epoch, are loaded before a step
// has ended: it doesn't end here until they are.
func TestLoadsDuringSteps(t *testing.T) { everywhere(t, testLoadsDuringSteps) }

func testLoadsDuringSteps(t *testing.T) {
	const batches, epochs, ahead = 4, 3, 3
	loaded := make([]chan struct{}, batches*epochs)
	for i := range loaded {
		loaded[i] = make(chan struct{})
	}
	ds := observe(ranktest.Blobs(12*batches), func(call int, _ []int) { close(loaded[call]) })
	done := 0
	wait := trainer.Callback{BatchEnd: func(*trainer.Event) error {
		done++
		for _, next := range loaded[done:min(done+ahead, len(loaded))] {
			<-next
		}
		if calls, _ := ds.count(); calls > done+ahead {
			t.Errorf("%d batches were begun after %d steps, want %d ahead", calls, done, ahead)
		}
		return nil
	}}
	c := trainer.Config{MaxEpochs: epochs, BatchSize: 12, Loggers: []string{"none"}, Loader: trainer.LoaderConfig{Workers: 2, Prefetch: ahead}}
	tr, _ := newTrainer(t, c, blobTask(plainNet), trainer.WithCallbacks(wait))
	if err := tr.Fit(t.Context(), ds, nil); err != nil {
		t.Fatal(err)
	}
	if calls, inside := ds.count(); done != batches*epochs || calls != done || inside != 0 {
		t.Errorf("%d steps, %d batches loaded, %d unfinished", done, calls, inside)
	}
}

// TestWorkersChangeNothing: whatever the workers, the prefetching, and where the training stops and
// resumes, its weights and metrics have the same bits. Nothing is loaded after Fit has returned.
func TestWorkersChangeNothing(t *testing.T) { everywhere(t, testWorkersChangeNothing) }

func testWorkersChangeNothing(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6)) // All ranks draw the same.
	for range tier.Tries(4, 2) {
		c := trainer.Config{
			MaxEpochs: 1 + rng.IntN(3), BatchSize: 12, EvalBatchSize: 1 + rng.IntN(20), Seed: rng.Uint64N(9), Loggers: []string{"none"},
			LimitTrainBatches: rng.IntN(6), ValCheckInterval: rng.IntN(4), AccumulateGradBatches: 1 + rng.IntN(2), Loader: trainer.LoaderConfig{Workers: -1},
		}
		examples, stop := 12+rng.IntN(80), 1+rng.Int64N(10)
		want := loading{c, examples}.fit(t, never)
		for range 3 {
			c.Loader = trainer.LoaderConfig{Workers: 1 + rng.IntN(4), Prefetch: 1 + rng.IntN(5)}
			c.Checkpoint.Dir = t.TempDir()
			got := loading{c, examples}.fit(t, stop)
			compareWeights(t, got.weights, want.weights)
			if got.metrics != want.metrics {
				t.Errorf("%+v: got %s, want %s", c.Loader, got.metrics, want.metrics)
			}
		}
	}
}

// loading is a training run in TestWorkersChangeNothing.
type loading struct {
	trainer.Config
	examples int
}

type loadingResult struct {
	weights map[string][]byte
	metrics string
}

// never is not a step at which a person stops a training run.
const never = -1

// fit trains to the end. A person stops the training after a step, and it resumes.
func (l loading) fit(t *testing.T, stop int64) loadingResult {
	t.Helper()
	ds := observe(ranktest.Blobs(l.examples), func(int, []int) {})
	for {
		ctx, cancel := context.WithCancel(t.Context())
		tr, _ := newTrainer(t, l.Config, blobTask(smallNet), stopAt(stop, cancel))
		err := tr.Fit(ctx, ds, ranktest.Blobs(31))
		cancel()
		if _, inside := ds.count(); inside != 0 {
			t.Errorf("%d batches are loaded after the end", inside)
		}
		if stopped := (*trainer.StoppedError)(nil); errors.As(err, &stopped) {
			stop = never
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		metrics, err := tr.Test(t.Context(), ranktest.Blobs(29))
		if err != nil {
			t.Fatal(err)
		}
		return loadingResult{weights(t, tr.Store()), fmt.Sprint(metrics)}
	}
}

// TestTornExample: an example that can't be loaded ends the training where its batch is due, with
// an error that names it. What was trained is saved: once the example is fixed, the training goes
// on, and ends with the weights of an undisturbed one.
func TestTornExample(t *testing.T) {
	const torn, batch = 5, 12 // In the batch of the 6th step.
	undisturbed := loading{trainer.Config{MaxEpochs: 2, BatchSize: batch, OverfitBatches: 8, Loggers: []string{"none"}}, 8 * batch}
	want := undisturbed.fit(t, never)
	errTorn := errors.New("torn")
	for name, fail := range map[string]func(){"an error": nil, "a panic": func() { panic(errTorn) }} {
		t.Run(name, func(t *testing.T) {
			c := undisturbed.Config
			c.Checkpoint.Dir = t.TempDir()
			tr, _ := newTrainer(t, c, blobTask(smallNet))
			err := tr.Fit(t.Context(), &tornSet{ranktest.Blobs(8 * batch), torn*batch + 7, errTorn, fail}, ranktest.Blobs(31))
			var failed *load.Error
			if !errors.As(err, &failed) || !errors.Is(err, errTorn) || failed.Examples[0] != torn*batch+7 || tr.Step() != torn ||
				!strings.Contains(err.Error(), "epoch 1, batch 6, rank 0: distributed: load example 67 of blobs: ") || !strings.HasSuffix(err.Error(), "; the training up to step 5 is saved") {
				t.Errorf("got %v after step %d", err, tr.Step())
			}
			undisturbed.Config = c
			got := undisturbed.fit(t, never)
			compareWeights(t, got.weights, want.weights)
			if got.metrics != want.metrics {
				t.Errorf("got %s, want %s", got.metrics, want.metrics)
			}
		})
	}
}

// tornSet is a dataset with one example that can't be loaded.
type tornSet struct {
	data.Dataset
	torn  int
	err   error
	panic func()
}

func (d *tornSet) Batch(indices []int) (inputs, labels []*tensors.Tensor, err error) {
	for _, index := range indices {
		if index == d.torn && d.panic != nil {
			d.panic()
		}
		if index == d.torn {
			return nil, nil, d.err
		}
	}
	return d.Dataset.Batch(indices)
}

// TestTornValidation: an example of the validation set that can't be loaded loses nothing either,
// and errors of tests and predictions name it too.
func TestTornValidation(t *testing.T) {
	errTorn := errors.New("torn")
	validation := &tornSet{Dataset: ranktest.Blobs(31), torn: 17, err: errTorn}
	c := trainer.Config{MaxEpochs: 2, BatchSize: 12, EvalBatchSize: 5, Loggers: []string{"none"}, Checkpoint: trainer.CheckpointConfig{Dir: t.TempDir()}}
	tr, _ := newTrainer(t, c, blobTask(plainNet))
	err := tr.Fit(t.Context(), ranktest.Blobs(48), validation)
	if err == nil || !strings.Contains(err.Error(), "load example 17 of blobs: torn; the training up to step 4 is saved") {
		t.Errorf("got %v", err)
	}
	c.Checkpoint.Resume = "must"
	tr, out := newTrainer(t, c, blobTask(plainNet))
	if err := tr.Fit(t.Context(), ranktest.Blobs(48), ranktest.Blobs(31)); err != nil || !strings.Contains(out.String(), "resumes after step 4") {
		t.Errorf("got %v and %s", err, out)
	}
	_, testErr := tr.Test(t.Context(), validation)
	predictErr := tr.Predict(t.Context(), validation, func([]int, []*tensors.Tensor) error { return nil })
	for _, err := range []error{testErr, predictErr} {
		if err == nil || !strings.Contains(err.Error(), "load example 17 of blobs: torn") {
			t.Errorf("got %v", err)
		}
	}
}

// TestPredictionLoadsAhead: predictions come in order, while the next batches are loaded.
func TestPredictionLoadsAhead(t *testing.T) {
	c := trainer.Config{MaxSteps: 1, BatchSize: 12, EvalBatchSize: 4, Loggers: []string{"none"}, Loader: trainer.LoaderConfig{Workers: 1, Prefetch: 1}}
	tr, _ := newTrainer(t, c, blobTask(plainNet))
	if err := tr.Fit(t.Context(), ranktest.Blobs(12), nil); err != nil {
		t.Fatal(err)
	}
	loaded := []chan struct{}{make(chan struct{}), make(chan struct{}), make(chan struct{})}
	ds := observe(ranktest.Blobs(10), func(call int, _ []int) { close(loaded[call]) })
	var seen []int
	err := tr.Predict(t.Context(), ds, func(indices []int, predictions []*tensors.Tensor) error {
		seen = append(seen, indices...)
		<-loaded[min(len(seen)/4, 2)]
		if got := predictions[0].Shape().Dimensions[0]; got != len(indices) {
			t.Errorf("%d predictions for %v", got, indices)
		}
		return nil
	})
	if err != nil || fmt.Sprint(seen) != "[0 1 2 3 4 5 6 7 8 9]" {
		t.Errorf("got %v, %v", seen, err)
	}
}

func TestLoaderConfig(t *testing.T) {
	tests := []struct {
		env  string
		c    trainer.LoaderConfig
		want trainer.LoaderConfig
		err  string
	}{
		{env: "TRAINER_LOADER_WORKERS=0", want: trainer.LoaderConfig{Workers: -1, Prefetch: 2}},
		{env: "TRAINER_LOADER_WORKERS=5", want: trainer.LoaderConfig{Workers: 5, Prefetch: 5}},
		{c: trainer.LoaderConfig{Workers: 1}, want: trainer.LoaderConfig{Workers: 1, Prefetch: 2}},
		{c: trainer.LoaderConfig{Workers: 1, Prefetch: 7}, want: trainer.LoaderConfig{Workers: 1, Prefetch: 7}},
		{env: "TRAINER_LOADER_PREFETCH=0", err: "loader.prefetch: 0: it must be at least 1"},
		{c: trainer.LoaderConfig{Workers: -2}, err: "loader.workers: -2: it must be at least 1, or -1 for none"},
	}
	for _, test := range tests {
		t.Run(fmt.Sprint(test.env, test.c), func(t *testing.T) {
			if name, value, ok := strings.Cut(test.env, "="); ok {
				t.Setenv(name, value)
			}
			tr, err := trainer.New(world(t), trainer.Config{Loader: test.c}, blobTask(plainNet))
			switch {
			case test.err != "":
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Errorf("got %v, want %q", err, test.err)
				}
			case err != nil || tr.Config().Loader != test.want:
				t.Errorf("got %+v, %v, want %+v", tr.Config().Loader, err, test.want)
			}
		})
	}
}
