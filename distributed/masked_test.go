package distributed_test

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train"
	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/gomlx/gomlx/ml/train/metric"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"gonbatch/distributed"
	"gonbatch/distributed/ranktest"
)

// masked are blobs of which a mask beside the labels leaves some.
type masked struct {
	ranktest.Blobs
	none bool // It leaves none.
}

func (m masked) Batch(indices []int) (inputs, labels []*tensors.Tensor, err error) {
	inputs, labels, err = m.Blobs.Batch(indices)
	mask := make([]bool, len(indices))
	for i, index := range indices {
		mask[i] = !m.none && index%5 > 1 && index%12 < 10 && index/6%2 == 0
	}
	return inputs, append(labels, tensors.FromFlatDataAndDimensions(mask, len(mask))), err
}

// TestMasked: a loop of one's own with a mask trains alike on any number of ranks, and its metrics
// don't depend on how examples are divided into batches. Even a rank whose examples are all masked
// takes part.
func TestMasked(t *testing.T) {
	train := func(t *testing.T) (*distributed.World, *train.Trainer, distributed.Metrics) {
		w := initWorld(t)
		trainer := newTrainer(w, 3)
		loader, err := w.Loader(masked{Blobs: 48}, distributed.LoaderOptions{BatchSize: 12, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if err := epoch(w, trainer, loader); err != nil {
				t.Fatal(err)
			}
		}
		metrics, err := w.Evaluate(t.Context(), trainer, masked{Blobs: 50}, 50)
		if err != nil {
			t.Fatal(err)
		}
		return w, trainer, metrics
	}
	const wanted = "WANTED"
	if ranktest.InRank() {
		w, trainer, metrics := train(t)
		if got := fmt.Sprint(metrics); got != os.Getenv(wanted) {
			t.Errorf("rank %d: %s, on one rank %s", w.Rank(), got, os.Getenv(wanted))
		}
		for _, size := range []int{1, 7} {
			again, err := w.Evaluate(t.Context(), trainer, masked{Blobs: 50}, size)
			if err != nil {
				t.Fatal(err)
			}
			for i, m := range again {
				if !(math.Abs(m.Value-metrics[i].Value) < 1e-5) {
					t.Errorf("in batches of %d: %s, want %s", size, again, metrics)
				}
			}
		}
		return
	}
	_, _, alone := train(t)
	t.Setenv(wanted, fmt.Sprint(alone))
	ranktest.Run(t, 3, nil)
}

// TestNothingCounts: an evaluation says if the mask leaves out everything, and warns of a metric
// that no weight makes right.
func TestNothingCounts(t *testing.T) {
	var log strings.Builder
	w, err := distributed.InitWith(t.Context(), distributed.Config{Getenv: os.Getenv, LookupEnv: os.LookupEnv, Out: &log, Log: &log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := w.Evaluate(t.Context(), newTrainer(w, 3), masked{Blobs: 20, none: true}, 7); err == nil || !strings.Contains(err.Error(), "nothing counts in the mean loss") {
		t.Errorf("got %v", err)
	}
	both := func(scope *model.Scope, labels, logits []*graph.Node) *graph.Node {
		return graph.Add(metric.SparseCategoricalAccuracyGraph(scope, labels, logits), metric.SparseCategoricalAccuracyGraph(scope, labels[:1], logits))
	}
	trainer := train.NewTrainer(w.Backend(), model.NewStore(), smallNet, loss.SparseCategoricalCrossEntropyLogits, optimizer.Adam().Done(), nil, []metric.Interface{metric.NewMeanMetric("Mean Both", "#b", "", both, nil)})
	if _, err := w.Evaluate(t.Context(), trainer, masked{Blobs: 20}, 7); err != nil || !strings.Contains(log.String(), `the metric "Mean Both" adds means over different numbers of values`) {
		t.Errorf("got %v; %s", err, log.String())
	}
}
