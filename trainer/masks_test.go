package trainer_test

import (
	"maps"
	"math"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/model/initializer"
	"github.com/gomlx/gomlx/ml/train"
	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/gomlx/gomlx/ml/train/metric"

	"gonbatch/data"
	"gonbatch/distributed/ranktest"
	"gonbatch/models"
	"gonbatch/trainer"
)

// maskKind says how a combination leaves labels out.
type maskKind int

const (
	noMask     maskKind = iota
	boolMask            // GoMLX's.
	ownMask             // The loss is written by hand, and doesn't count the class 0.
	ownWeights          // The loss is a weighted mean: the classes have weights.
	smoothed            // GoMLX's mask, with labels that are smoothed in training only.
)

// masked has a mask beside its labels. Some batches are all masked.
type masked struct{ data.Dataset }

func (m masked) Batch(indices []int) (inputs, labels []*tensors.Tensor, err error) {
	inputs, labels, err = m.Dataset.Batch(indices)
	mask := make([]bool, len(indices))
	for i, index := range indices {
		mask[i] = index/8%3 < 2 && index%3 != 1
	}
	return inputs, append(labels, tensors.FromFlatDataAndDimensions(mask, len(mask))), err
}

// blobs returns that many examples.
func (c combination) blobs(n int) data.Dataset {
	if c.masks == boolMask || c.masks == smoothed {
		return masked{ranktest.Blobs(n)}
	}
	return ranktest.Blobs(n)
}

// mean is the cross-entropy of the labels that count.
func (k maskKind) mean(labels, logits []*graph.Node) *graph.Node {
	if k == smoothed {
		return models.SmoothedCrossEntropy(0.1)(labels, logits)
	}
	if k == noMask || k == boolMask {
		return loss.SparseCategoricalCrossEntropyLogits(labels, logits)
	}
	counts := graph.ConvertDType(k.counts(labels[0]), logits[0].DType())
	hot := graph.OneHot(graph.Squeeze(labels[0], -1), ranktest.Classes, logits[0].DType())
	each := graph.Neg(graph.ReduceSum(graph.Mul(hot, graph.LogSoftmax(logits[0])), -1))
	return graph.Div(graph.ReduceAllSum(graph.Mul(each, counts)), graph.ReduceAllSum(counts))
}

// counts returns how much each label counts: the weight of a class is its number.
func (k maskKind) counts(labels *graph.Node) *graph.Node {
	classes := graph.Squeeze(labels, -1)
	if k == ownMask {
		return graph.GreaterThan(classes, graph.ZerosLike(classes))
	}
	return classes
}

// accuracy counts the labels that the loss does.
func (k maskKind) accuracy(scope *model.Scope, labels, logits []*graph.Node) *graph.Node {
	switch k {
	case ownMask:
		labels = append(labels[:1:1], k.counts(labels[0]))
	case ownWeights:
		labels = append(labels[:1:1], graph.ConvertDType(k.counts(labels[0]), logits[0].DType()))
	}
	return metric.SparseCategoricalAccuracyGraph(scope, labels, logits)
}

// sequences are examples of which half are short. Each batch is padded to its longest one.
type sequences int

func (sequences) Name() string { return "sequences" }
func (s sequences) Len() int   { return int(s) }

func (sequences) Batch(indices []int) (inputs, labels []*tensors.Tensor, err error) {
	length := func(i int) int { return []int{2, 16}[i/4%2] }
	longest := 0
	for _, i := range indices {
		longest = max(longest, length(i))
	}
	x, y := make([]float32, len(indices)*longest), make([]float32, len(indices)*longest)
	for row, i := range indices {
		for at := range length(i) {
			x[row*longest+at], y[row*longest+at] = float32((7*i+3*at)%5)/5+0.2, float32(1+i/4%2*3)
		}
	}
	return []*tensors.Tensor{tensors.FromFlatDataAndDimensions(x, len(indices), longest, 1)}, []*tensors.Tensor{tensors.FromFlatDataAndDimensions(y, len(indices), longest, 1)}, nil
}

// TestPaddedBatches: tokens count the same in batches that are padded to different lengths, also if
// a layer adds a masked term to the loss. If it adds another mean, the trainer warns.
func TestPaddedBatches(t *testing.T) {
	mean := func(e, of *graph.Node) *graph.Node {
		counts := graph.ConvertDType(graph.NotEqual(of, graph.ZerosLike(of)), e.DType())
		return graph.Div(graph.ReduceAllSum(graph.Mul(counts, graph.Square(e))), graph.MaxScalar(graph.ReduceAllSum(counts), 1))
	}
	of := func(labels, p []*graph.Node) *graph.Node { return mean(graph.Sub(labels[0], p[0]), labels[0]) }
	for _, test := range []struct {
		name, precision string
		adds            func(scope *model.Scope, out *graph.Node) *graph.Node
		warns           bool
	}{
		{name: "plain"}, {name: "float16", precision: "16-mixed"},
		{name: "L2", adds: func(scope *model.Scope, out *graph.Node) *graph.Node {
			return graph.MulScalar(graph.ReduceAllSum(graph.Square(scope.Store().GetVariable("/d/dense/weights").NodeValue(out))), 0.1)
		}},
		{name: "another mean", warns: true, adds: func(_ *model.Scope, out *graph.Node) *graph.Node { return graph.ReduceAllMean(graph.Square(out)) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			net := func(scope *model.Scope, x *graph.Node) *graph.Node {
				out := layers.Dense(scope.WithInitializer(initializer.Zero).In("d"), x, true, 1)
				if test.adds != nil {
					train.AddRegularizationLoss(test.adds(scope, out))
				}
				return out
			}
			fit := func(batch, accumulate int) ([]float64, string) {
				c := trainer.Config{MaxEpochs: 2, BatchSize: batch, AccumulateGradBatches: accumulate, Shuffle: new(false), Precision: test.precision, Checkpoint: trainer.CheckpointConfig{Off: true}}
				tr, out := newTrainer(t, c, trainer.Supervised(net, of, trainer.SGD{LearningRate: 0.1}))
				if err := tr.Fit(t.Context(), sequences(8), nil); err != nil {
					t.Fatal(err)
				}
				return trainedFloats(t, tr, "/"), out.String()
			}
			whole, said := fit(8, 1)
			halves, warned := fit(4, 2)
			limit := 1e-6
			if test.precision != "" {
				limit = 1e-2
			}
			if d := distance(whole, halves); (d > limit) != test.warns {
				t.Errorf("with batches of 4 the weights are %v, with those of 8 %v", halves, whole)
			}
			if warns := strings.Contains(warned, "warning: the loss adds means over different numbers of values"); warns != test.warns || strings.Contains(said, "warning: the loss") {
				t.Errorf("warns %v:\n%s\n%s", warns, said, warned)
			}
		})
	}
}

// TestNothingCountsInATerm: a term that a layer adds is 0, not NaN, for a batch in which nothing
// counts for it.
func TestNothingCountsInATerm(t *testing.T) {
	net := func(scope *model.Scope, x *graph.Node) *graph.Node {
		out := layers.Dense(scope.In("d"), x, true, 1)
		counts := graph.ConvertDType(graph.GreaterThan(x, graph.Scalar(x.Graph(), x.DType(), 9)), x.DType())
		train.AddRegularizationLoss(graph.Div(graph.ReduceAllSum(graph.Mul(counts, out)), graph.ReduceAllSum(counts)))
		return out
	}
	for _, precision := range []string{"32-true", "16-mixed"} {
		c := trainer.Config{MaxEpochs: 1, BatchSize: 4, Precision: precision, Checkpoint: trainer.CheckpointConfig{Off: true}}
		tr, _ := newTrainer(t, c, trainer.Supervised(net, loss.MeanSquaredError, trainer.SGD{LearningRate: 0.01}))
		if err := tr.Fit(t.Context(), sequences(8), nil); err != nil {
			t.Errorf("%s: %v", precision, err)
		}
		if metrics, err := tr.Test(t.Context(), sequences(8)); err != nil || !(metrics["test/loss"] > 0) {
			t.Errorf("%s: %v, %v", precision, metrics, err)
		}
	}
}

// TestEvalLoss: validations compute the loss that WithEvalLoss gives them, and the training its
// own.
func TestEvalLoss(t *testing.T) {
	values := func(task trainer.Task) (val, training float64) {
		t.Helper()
		c := trainer.Config{BatchSize: 8, MaxEpochs: 1, Seed: 3, Loggers: []string{"none"}, Checkpoint: trainer.CheckpointConfig{Off: true}}
		end := trainer.Metrics{}
		tr, _ := newTrainer(t, c, task, trainer.WithCallbacks(trainer.Callback{FitEnd: func(e *trainer.Event) error {
			end = maps.Clone(e.Metrics)
			return nil
		}}))
		if err := tr.Fit(t.Context(), ranktest.Blobs(8), ranktest.Blobs(8)); err != nil {
			t.Fatal(err)
		}
		return end["val/loss"], end["train/loss"]
	}
	net := func(scope *model.Scope, x *graph.Node) *graph.Node {
		return layers.Dense(scope, graph.Reshape(x, x.Shape().Dim(0), -1), true, ranktest.Classes)
	}
	still := trainer.SGD{LearningRate: 1e-12} // So the weights are always the same.
	smooth, plain := models.SmoothedCrossEntropy(0.3), loss.SparseCategoricalCrossEntropyLogits
	first, _ := values(trainer.Supervised(net, plain, still))
	second, _ := values(trainer.Supervised(net, smooth, still))
	val, training := values(trainer.WithEvalLoss(trainer.Supervised(net, smooth, still), plain))
	if val != first || math.Abs(training-second) > 1e-6 || first == second {
		t.Errorf("val/loss %g, train/loss %g; want %g, that of the plain loss, and %g, that of the smoothed", val, training, first, second)
	}
}
