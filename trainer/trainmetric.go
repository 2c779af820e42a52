package trainer

import (
	"fmt"
	"slices"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/train/metric"

	"gonbatch/distributed/weigh"
)

// trainMetric is a metric of the batches of a training.
type trainMetric struct {
	name  string
	value metric.BaseMetricGraph
}

// WithTrainMetric computes a metric of each training batch, from the labels and the predictions
// that its loss is computed from. The trainer logs it as "train/" and the name, as the mean over
// batches and ranks since the last report, and it can be monitored. The predictions are those of
// the training: with dropout, and each batch before its update.
//
//	trainer.WithTrainMetric("accuracy", metric.SparseCategoricalAccuracyGraph)
//
// value is a mean over the examples of a batch, or has a value for each. A batch whose mean divides
// by a sum over its data, such as the number of values that a mask leaves, counts as that, for each
// example. For an Adversarial task, the predictions are the inputs of the step.
func WithTrainMetric(name string, value metric.BaseMetricGraph) Option {
	return func(t *Trainer) { t.trainMetrics = append(t.trainMetrics, trainMetric{name, value}) }
}

func (t *Trainer) checkTrainMetrics() error {
	taken := append(t.task.trainingLosses(), "train/examples_per_second", "train/data_wait", "train/loss_scale", "train/skipped_updates")
	for _, m := range t.trainMetrics {
		switch name := m.logged(); {
		case !validationName.MatchString(m.name):
			return fmt.Errorf("the training metric %q: its name must have small letters, digits and _ only", m.name)
		case slices.Contains(taken, name):
			return fmt.Errorf("the training metric %q: the trainer logs another metric as %q: rename it", m.name, name)
		case m.value == nil:
			return fmt.Errorf("the training metric %q is nil", m.name)
		default:
			taken = append(taken, name)
		}
	}
	return nil
}

// logged returns the name in logs.
func (m trainMetric) logged() string { return "train/" + m.name }

// build returns a metric's mean over a batch.
func (m trainMetric) build(s *draft, labels, predictions []*graph.Node) *graph.Node {
	x := m.value(s.store.RootScope(), labels, predictions)
	if x.DType() != dtypes.Float64 { // Half precision is too coarse for the mean, and integers have none.
		x = graph.ConvertDType(x, dtypes.Float32)
	}
	mean := weigh.Metric(s.store, graph.ReduceAllMean(x))
	s.means.metrics = append(s.means.metrics, mean)
	return mean.Value
}
