package trainer

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/compute/support/xslices"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train/metric"

	"gonbatch/data"
	"gonbatch/internal/plural"
	"gonbatch/internal/unread"
	"gonbatch/trainer/internal/saved"
	"gonbatch/trainer/internal/step"
)

// Confusion runs a classifier over a dataset and counts the class predicted for each example: the
// one with the largest score in the model's first prediction, [n, classes]. The labels are class
// numbers, [n] or [n, 1]. classes are the names of the classes, such as those of data.Folder, or
// nil. It is collective, and each rank gets the counts of all ranks.
func (t *Trainer) Confusion(ctx context.Context, ds data.Dataset, classes []string) (c *Confusion, err error) {
	defer func() { err = unread.Error("trainer.Confusion", err) }()
	if err := sameOrder(classes, data.Classes(ds)); err != nil {
		return nil, fmt.Errorf("trainer: %s: confusion of %s: %w", t.config.Name, ds.Name(), err)
	}
	var own [][]int
	err = t.predictPart(ctx, ds, meaning.check, func(indices []int, predictions, labels []*tensors.Tensor) (err error) {
		own, err = count(own, indices, predictions, labels)
		return err
	})
	if err := t.world.Together(err); err != nil {
		return nil, err
	}
	if c, err = t.gathered(own, classes); err != nil {
		return nil, fmt.Errorf("trainer: %s: confusion of %s: %w", t.config.Name, ds.Name(), err)
	}
	return c, nil
}

// Classified is the class that a model predicts for an example.
type Classified struct {
	// Class is the number of the class with the largest score, Name its name.
	Class int
	Name  string
	// Score is the model's number for this class, such as a logit.
	Score float64
}

// Classify runs a classifier over a dataset, which needs no labels, and returns the class predicted
// for each example: the one with the largest score in the model's first prediction, [n, classes].
// classes are the names of the classes, such as those of the training set, or nil. It is
// collective; rank 0 gets the predictions, in the dataset's order, and other ranks nil.
func (t *Trainer) Classify(ctx context.Context, ds data.Dataset, classes []string) (all []Classified, err error) {
	defer func() { err = unread.Error("trainer.Classify", err) }()
	err = t.predictOnMain(ctx, ds, func(indices []int, predictions []*tensors.Tensor) error {
		rows, err := scoresOf(indices, predictions)
		if err != nil {
			return err
		}
		names, err := classNames(classes, len(rows[0]))
		if err != nil {
			return err
		}
		for _, row := range rows {
			class := largest(row)
			all = append(all, Classified{class, names[class], row[class]})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// gathered adds up the counts of all ranks.
func (t *Trainer) gathered(own [][]int, classes []string) (*Confusion, error) {
	all, err := saved.Gather(t.world, own)
	if err != nil {
		return nil, err
	}
	n := 0
	for _, counts := range all {
		n = max(n, len(counts)) // A rank without examples doesn't know the number of classes.
	}
	names, err := classNames(classes, n)
	if err != nil {
		return nil, err
	}
	c := newConfusion(names)
	for _, counts := range all {
		c.add(counts)
	}
	return c, nil
}

// count adds the examples of a batch to the counts.
func count(counts [][]int, indices []int, predictions, labels []*tensors.Tensor) ([][]int, error) {
	rows, err := scoresOf(indices, predictions)
	if err != nil {
		return nil, err
	}
	n, classes := len(rows), len(rows[0])
	if len(labels) == 0 || labels[0].Size() != n || !labels[0].DType().IsInt() {
		return nil, fmt.Errorf("the labels are %v: they must be the classes' numbers, [%d] or [%d, 1] of an integer type", shapesOf(labels), n, n)
	}
	if counts == nil {
		counts = newConfusion(make([]string, classes)).Counts
	}
	own, err := step.Numbers(labels[0])
	if err != nil {
		return nil, err
	}
	for i, label := range own {
		if label < 0 || int(label) >= classes {
			return nil, fmt.Errorf("the label %.0f: the model has the classes 0 to %d", label, classes-1)
		}
		counts[int(label)][largest(rows[i])]++
	}
	return counts, nil
}

// scoresOf returns the scores of the classes for each example of a batch.
func scoresOf(indices []int, predictions []*tensors.Tensor) (rows [][]float64, err error) {
	if len(predictions) == 0 || predictions[0].Rank() != 2 || predictions[0].Shape().Dimensions[1] < 2 {
		return nil, fmt.Errorf("the model predicts %v: a classifier's first prediction must be [n, classes], with a number for each of at least 2 classes", shapesOf(predictions))
	}
	scores, err := step.Numbers(predictions[0])
	if err != nil {
		return nil, err
	}
	rows = slices.Collect(slices.Chunk(scores, predictions[0].Shape().Dimensions[1]))
	for i, row := range rows {
		if slices.ContainsFunc(row, math.IsNaN) {
			return nil, fmt.Errorf("example %d: the model predicts %.4g, and NaN is no score: its weights, or the example, aren't finite", indices[i], row)
		}
	}
	return rows, nil
}

// classNames returns the names of n classes: the given ones, or their numbers.
func classNames(given []string, n int) ([]string, error) {
	if given != nil && len(given) != n {
		return nil, fmt.Errorf("the names are for %s, the model predicts %d", plural.Of(len(given), "class"), n)
	}
	names := slices.Clone(given)
	for class := len(given); class < n; class++ {
		names = append(names, strconv.Itoa(class))
	}
	return names, nil
}

// largest returns the index of the largest score; the first one if several are equal.
func largest(scores []float64) (at int) {
	for i, score := range scores {
		if score > scores[at] {
			at = i
		}
	}
	return at
}

func shapesOf(all []*tensors.Tensor) []shapes.Shape { return xslices.Map(all, (*tensors.Tensor).Shape) }

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
