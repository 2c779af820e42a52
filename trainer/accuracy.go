package trainer

import (
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train/metric"
)

// CategoricalAccuracy is the accuracy of a classifier whose labels are probabilities, [n, classes],
// such as those of data.MixUp: the share of the examples whose most probable class has the largest
// prediction. It is logged as "val/accuracy". For labels that are the numbers of classes, [n, 1],
// use metric.NewSparseCategoricalAccuracy("Mean Accuracy", "#acc").
func CategoricalAccuracy() metric.Interface {
	of := func(scope *model.Scope, labels, predictions []*graph.Node) *graph.Node {
		classes := graph.ExpandAxes(graph.ArgMax(labels[0], -1), -1)
		return metric.SparseCategoricalAccuracyGraph(scope, append([]*graph.Node{classes}, labels[1:]...), predictions)
	}
	return metric.NewMeanMetric("Mean Accuracy", "#acc", metric.AccuracyMetricType, of, nil)
}
