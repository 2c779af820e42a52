package trainer_test

import (
	"context"
	"errors"
	"maps"
	"math"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/gomlx/gomlx/ml/train/metric"

	"gonbatch/distributed/ranktest"
	"gonbatch/logger"
	"gonbatch/trainer"
)

// values records scalars.
type values struct {
	logger.Logger
	all map[int64]map[string]float64
}

func (v values) Scalars(step int64, scalars map[string]float64) error {
	if _, ok := scalars["train/loss"]; ok {
		v.all[step] = maps.Clone(scalars)
	}
	return v.Logger.Scalars(step, scalars)
}

// TestTrainMetrics: the loss as a metric is the loss, in each report, of accumulated batches and
// after a restart, and the accuracy of a model that hardly learns is the one that a test finds.
func TestTrainMetrics(t *testing.T) { everywhere(t, testTrainMetrics) }

func testTrainMetrics(t *testing.T) {
	c := trainer.Config{
		MaxEpochs: 2, BatchSize: 12, AccumulateGradBatches: 2, LogEvery: 4, Seed: 2, Loggers: []string{"none"},
		Checkpoint: trainer.CheckpointConfig{EverySteps: 3, Dir: t.TempDir(), Monitor: "train/accuracy"},
	}
	task := trainer.Supervised(plainNet, loss.SparseCategoricalCrossEntropyLogits, trainer.SGD{LearningRate: 1e-9}, metric.NewSparseCategoricalAccuracy("Mean Accuracy", "#acc"))
	again := func(_ *model.Scope, labels, predictions []*graph.Node) *graph.Node {
		return loss.SparseCategoricalCrossEntropyLogits(labels, predictions)
	}
	all, last := map[int64]map[string]float64{}, map[string]float64{}
	options := []trainer.Option{
		trainer.WithTrainMetric("accuracy", metric.SparseCategoricalAccuracyGraph), trainer.WithTrainMetric("again", again),
		trainer.WithLogger(values{logger.NewMulti(logger.MultiOptions{}), all}),
		trainer.WithCallbacks(trainer.Callback{EpochEnd: func(e *trainer.Event) error { last = maps.Clone(e.Metrics); return nil }}),
	}
	killed, _ := newTrainer(t, c, task, append(options, killAt(7))...)
	if err := killed.Fit(t.Context(), ranktest.Blobs(144), nil); !errors.Is(err, errKilled) {
		t.Fatal(err)
	}
	c.LogEvery = 0 // From now on, a report covers the rest of the epoch.
	tr, _ := newTrainer(t, c, task, options...)
	if err := tr.Fit(t.Context(), ranktest.Blobs(144), nil); err != nil {
		t.Fatal(err)
	}
	test, err := tr.Test(t.Context(), ranktest.Blobs(144))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := last["train/accuracy"], test["test/accuracy"]; math.Abs(got-want) > 1e-6 || want == 0 {
		t.Errorf("train/accuracy %g, test/accuracy %g", got, want)
	}
	if world(t).IsMain() && len(all) < 3 {
		t.Errorf("%d reports", len(all))
	}
	for step, got := range all {
		if math.Abs(got["train/again"]-got["train/loss"]) > 1e-6 || got["train/loss"] == 0 || got["train/accuracy"] == 0 {
			t.Errorf("step %d: %v", step, got)
		}
	}
}

// TestTrainMetricOfNoNumber doesn't end the training.
func TestTrainMetricOfNoNumber(t *testing.T) {
	nan := func(_ *model.Scope, _, predictions []*graph.Node) *graph.Node {
		return graph.Log(graph.Neg(graph.Square(predictions[0])))
	}
	tr, _ := newTrainer(t, trainer.Config{BatchSize: 12, MaxSteps: 3}, blobTask(plainNet), trainer.WithTrainMetric("none", nan))
	if err := tr.Fit(context.Background(), ranktest.Blobs(145), nil); err != nil {
		t.Error(err)
	}
}

func TestTrainMetricsRefused(t *testing.T) {
	accuracy := metric.SparseCategoricalAccuracyGraph
	for want, options := range map[string][]trainer.Option{
		`the training metric "Accuracy": its name must have small letters`:                       {trainer.WithTrainMetric("Accuracy", accuracy)},
		`the training metric "loss": the trainer logs another metric as "train/loss": rename it`: {trainer.WithTrainMetric("loss", accuracy)},
		`the training metric "a": the trainer logs another`:                                      {trainer.WithTrainMetric("a", accuracy), trainer.WithTrainMetric("a", accuracy)},
		`the training metric "a" is nil`:                                                         {trainer.WithTrainMetric("a", nil)},
	} {
		if _, err := trainer.New(world(t), trainer.Config{}, blobTask(plainNet), options...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
