package trainer_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train/loss"

	"gonbatch/data"
	"gonbatch/distributed/ranktest"
	"gonbatch/trainer"
)

// TestConfusion: on every rank, the counts are those of all examples, even if some ranks have none;
// the accuracy equals that of Test.
func TestConfusion(t *testing.T) { everywhere(t, testConfusion) }

func testConfusion(t *testing.T) {
	tr, _ := newTrainer(t, trainer.Config{MaxSteps: 4, BatchSize: 12, EvalBatchSize: 7}, blobTask(plainNet))
	mustFit(t, tr)
	for _, n := range []int{1, 2, 50} {
		c, err := tr.Confusion(t.Context(), ranktest.Blobs(n), nil)
		if err != nil {
			t.Fatal(err)
		}
		labels := map[int]int{}
		for _, class := range classes(t, n) {
			labels[int(class)]++
		}
		for class := range ranktest.Classes {
			if c.Examples(class) != labels[class] {
				t.Errorf("%d examples, of class %d %d, want %d", n, class, c.Examples(class), labels[class])
			}
		}
		metrics, err := tr.Test(t.Context(), ranktest.Blobs(n))
		if err != nil || math.Abs(metrics["test/accuracy"]-c.Accuracy()) > 1e-6 {
			t.Errorf("the accuracy of %d is %g, by Test %v, %v", n, c.Accuracy(), metrics, err)
		}
	}
}

// TestConfusionMetrics: computed by hand, for three classes of which one is never predicted.
func TestConfusionMetrics(t *testing.T) {
	c := &trainer.Confusion{Classes: []string{"cat", "dog", "owl"}, Counts: [][]int{{6, 2, 0}, {1, 9, 0}, {1, 1, 0}}}
	for what, pair := range map[string][2]float64{
		"accuracy": {c.Accuracy(), 15. / 20}, "precision of cats": {c.Precision(0), 6. / 8}, "recall of cats": {c.Recall(0), 6. / 8},
		"precision of dogs": {c.Precision(1), 9. / 12}, "recall of dogs": {c.Recall(1), 0.9}, "F1 of dogs": {c.F1(1), 2 * 0.75 * 0.9 / (0.75 + 0.9)},
		"recall of owls": {c.Recall(2), 0}, "F1 of owls": {c.F1(2), 0}, "macro F1": {c.MacroF1(), (0.75 + 2*0.75*0.9/(0.75+0.9)) / 3},
	} {
		if math.Abs(pair[0]-pair[1]) > 1e-12 {
			t.Errorf("%s: %g, want %g", what, pair[0], pair[1])
		}
	}
	if !math.IsNaN(c.Precision(2)) {
		t.Errorf("the precision of a class that is never taken is %g", c.Precision(2))
	}
	const want = `  class  cat  dog  owl  examples  precision  recall      F1
    cat    6    2    0         8     0.7500  0.7500  0.7500
    dog    1    9    0        10     0.7500  0.9000  0.8182
    owl    1    1    0         2        NaN  0.0000  0.0000
accuracy 0.7500, macro F1 0.5227
`
	if got := c.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// TestConfusionRefuses: anything but a classification is refused, on all ranks.
func TestConfusionRefuses(t *testing.T) { everywhere(t, testConfusionRefuses) }

func testConfusionRefuses(t *testing.T) {
	one := func(scope *model.Scope, x *graph.Node) *graph.Node {
		return layers.Dense(scope.In("y"), graph.Reshape(x, x.Shape().Dimensions[0], -1), true, 1)
	}
	wide := func(scope *model.Scope, x *graph.Node) *graph.Node {
		return layers.Dense(scope.In("y"), graph.Reshape(x, x.Shape().Dimensions[0], -1), true, 2)
	}
	unsure := func(scope *model.Scope, x *graph.Node) *graph.Node {
		y := plainNet(scope, x)
		return graph.Div(graph.Sub(y, y), graph.Sub(y, y))
	}
	for _, c := range []struct {
		net   func(*model.Scope, *graph.Node) *graph.Node
		ds    data.Dataset
		names []string
		want  string
	}{
		{one, ranktest.Blobs(9), nil, "a classifier's first prediction must be [n, classes]"},
		{wide, regression{9, dtypes.Float32}, nil, "they must be the classes' numbers, ["},
		{wide, ranktest.Blobs(40), nil, "the model has the classes 0 to 1"},
		{unsure, ranktest.Blobs(9), nil, "and NaN is no score"},
		{plainNet, described{Dataset: ranktest.Blobs(9), classes: []string{"a", "b", "c", "d"}}, []string{"b", "a", "c", "d"}, `the classes ["b" "a" "c" "d"] are those of the set in another order`},
		{plainNet, ranktest.Blobs(9), []string{"cat", "dog"}, "the names are for 2 classes, the model predicts 4"},
	} {
		tr, _ := newTrainer(t, trainer.Config{}, trainer.Supervised(c.net, loss.SparseCategoricalCrossEntropyLogits, plainSGD(1)))
		_, err := tr.Confusion(t.Context(), c.ds, c.names)
		if err == nil || tr.World().Size() == 1 && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
		if _, err := tr.Classify(t.Context(), c.ds, c.names); strings.HasPrefix(c.want, "the names") && err == nil {
			t.Errorf("Classify takes %v", c.names)
		}
	}
}

// unlabeled is a set without its labels.
type unlabeled struct{ data.Dataset }

func (u unlabeled) Batch(indices []int) (inputs, labels []*tensors.Tensor, err error) {
	inputs, labels, err = u.Dataset.Batch(indices)
	for _, l := range labels {
		err = errors.Join(err, l.FinalizeAll())
	}
	return inputs, nil, err
}

// TestClassify: the named classes are those that the counts of Confusion have, in the dataset's
// order, on rank 0.
func TestClassify(t *testing.T) { everywhere(t, testClassify) }

func testClassify(t *testing.T) {
	const n = 40
	tr, _ := newTrainer(t, trainer.Config{MaxSteps: 4, BatchSize: 12, EvalBatchSize: 7}, blobTask(plainNet))
	mustFit(t, tr)
	c, err := tr.Confusion(t.Context(), ranktest.Blobs(n), nil)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"cat", "dog", "owl", "pig"}
	all, err := tr.Classify(t.Context(), unlabeled{ranktest.Blobs(n)}, names)
	if err != nil {
		t.Fatal(err)
	}
	if !tr.World().IsMain() {
		if all != nil {
			t.Errorf("%v", all)
		}
		return
	}
	counts := make([][]int, len(names))
	for i := range counts {
		counts[i] = make([]int, len(names))
	}
	for i, label := range classes(t, n) {
		counts[label][all[i].Class]++
		if all[i].Name != names[all[i].Class] {
			t.Errorf("%+v", all[i])
		}
	}
	if len(all) != n || !slices.EqualFunc(counts, c.Counts, slices.Equal) {
		t.Errorf("%d classified, %v; want %v", len(all), counts, c.Counts)
	}
}

// TestPredictLabeled: each example comes with its own label.
func TestPredictLabeled(t *testing.T) {
	tr, _ := newTrainer(t, trainer.Config{EvalBatchSize: 7}, blobTask(plainNet))
	want, seen := classes(t, 40), 0
	err := tr.PredictLabeled(t.Context(), ranktest.Blobs(40), func(indices []int, predictions, labels []*tensors.Tensor) error {
		for i, label := range tensors.MustCopyFlatData[int32](labels[0]) {
			if label != want[indices[i]] || predictions[0].Shape().Dimensions[0] != len(indices) {
				t.Errorf("example %d has the label %d, want %d", indices[i], label, want[indices[i]])
			}
			seen++
		}
		return nil
	})
	if err != nil || seen != 40 {
		t.Errorf("%d labels, %v", seen, err)
	}
}
