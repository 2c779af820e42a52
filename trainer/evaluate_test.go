package trainer_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/gomlx/gomlx/ml/train/metric"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"gonbatch/data"
	"gonbatch/distributed/ranktest"
	"gonbatch/trainer"
)

// TestMedian: the median of one value per example, over batches, devices and ranks.
func TestMedian(t *testing.T) { everywhere(t, testMedian) }

func testMedian(t *testing.T) {
	label := func(_ *model.Scope, labels, predictions []*graph.Node) *graph.Node {
		return graph.Reshape(graph.ConvertDType(labels[0], predictions[0].DType()), -1)
	}
	mean := func(scope *model.Scope, labels, predictions []*graph.Node) *graph.Node {
		return graph.ReduceAllMean(label(scope, labels, predictions))
	}
	median := func(of metric.BaseMetricGraph, batch int) func(n int) (float64, error) {
		task := trainer.Supervised(plainNet, loss.SparseCategoricalCrossEntropyLogits, optimizer.Adam().Done(), metric.NewMedianMetric("Median", "med", "loss", of, nil))
		tr, _ := newTrainer(t, trainer.Config{EvalBatchSize: batch}, task)
		return func(n int) (float64, error) {
			metrics, err := tr.Test(t.Context(), ranktest.Blobs(n))
			return metrics["test/median"], err
		}
	}
	oneByOne := median(mean, 1)
	for _, n := range []int{30, 33, 35} {
		labels := slices.Sorted(slices.Values(classes(t, n)))
		if got, err := oneByOne(n); err != nil || got != float64(labels[n/2]) {
			t.Errorf("%d examples one by one: the median is %v, %v, want %d", n, got, err, labels[n/2])
		}
		inBatches := median(label, 12)
		for range 2 { // The second time must not be affected by the first.
			if got, err := inBatches(n); err != nil || got != float64(labels[n/2]) {
				t.Errorf("%d examples in batches: the median is %v, %v, want %d", n, got, err, labels[n/2])
			}
		}
	}
	labels := slices.Sorted(slices.Values(classes(t, 7)))
	if got, err := median(label, 1000)(7); err != nil || got != float64(labels[3]) {
		t.Errorf("7 examples at once: the median is %v, %v, want %d", got, err, labels[3])
	}
	if _, err := median(mean, 12)(30); err == nil || !strings.Contains(err.Error(), "values for 30 examples, and a median of the batches' values depends on the batches") {
		t.Errorf("a median of means of batches: %v", err)
	}
}

// classes returns the classes of the first n of Blobs, in order.
func classes(t *testing.T, n int) []int32 {
	t.Helper()
	var labels []int32
	for i := range n {
		_, one, err := ranktest.Blobs(n).Batch([]int{i})
		if err != nil {
			t.Fatal(err)
		}
		labels = append(labels, tensors.MustCopyFlatData[int32](one[0])...)
	}
	return labels
}

// TestInfiniteMetric: a validation without a finite result does not end the training, and its
// checkpoint can be loaded.
func TestInfiniteMetric(t *testing.T) { everywhere(t, testInfiniteMetric) }

func testInfiniteMetric(t *testing.T) {
	for _, value := range []float64{math.Inf(1), math.Inf(-1), math.NaN()} {
		of := func(_ *model.Scope, _, predictions []*graph.Node) *graph.Node {
			return graph.Scalar(predictions[0].Graph(), predictions[0].DType(), value)
		}
		dir := sharedTempDir(t)
		for epochs := int64(1); epochs <= 3; epochs += 2 {
			task := trainer.Supervised(plainNet, loss.SparseCategoricalCrossEntropyLogits, optimizer.Adam().Done(), metric.NewMeanMetric("Perplexity", "ppl", "ppl", of, nil))
			c := trainer.Config{MaxEpochs: int(epochs), BatchSize: 12, Checkpoint: trainer.CheckpointConfig{Dir: dir, Monitor: "val/perplexity"}}
			c.EarlyStopping = trainer.EarlyStoppingConfig{Monitor: "val/perplexity", Patience: 10}
			tr, _ := newTrainer(t, c, task)
			if err := tr.Fit(t.Context(), ranktest.Blobs(145), ranktest.Blobs(40)); err != nil || tr.Step() != 12*epochs {
				t.Errorf("%v: %v after step %d, want %d", value, err, tr.Step(), 12*epochs)
			}
		}
	}
}

// sharedTempDir returns one folder for all ranks.
func sharedTempDir(t *testing.T) string {
	t.Helper()
	path, err := world(t).Broadcast([]byte(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = world(t).Barrier() }) // It is removed when no rank needs it.
	return string(path)
}

// words is Blobs as four integers each, for a step that looks them up.
type words struct{ ranktest.Blobs }

func (w words) Batch(indices []int) (inputs, labels []*tensors.Tensor, err error) {
	_, labels, err = w.Blobs.Batch(indices)
	return []*tensors.Tensor{tensors.FromFlatDataAndDimensions(make([]int32, 4*len(indices)), len(indices), 4)}, labels, err
}

// TestWholeNumbersAndHalf: the means of a step's losses are weighted by the number of examples,
// whatever the inputs' type. bfloat16 can't represent 257.
func TestWholeNumbersAndHalf(t *testing.T) { everywhere(t, testWholeNumbersAndHalf) }

func testWholeNumbersAndHalf(t *testing.T) {
	step := func(scope *model.Scope, inputs, labels []*graph.Node) []*graph.Node {
		weight := scope.In("a").VariableWithValue("x", float32(1)).NodeValue(inputs[0])
		return []*graph.Node{graph.Mul(weight, graph.ReduceAllMean(graph.ConvertDType(labels[0], dtypes.Float32)))}
	}
	var want float64
	for _, class := range classes(t, 514) {
		want += float64(class) / 514
	}
	for _, c := range []struct {
		precision string
		ds        data.Dataset
	}{{"32-true", words{514}}, {"32-true", ranktest.Blobs(514)}, {"bf16-true", ranktest.Blobs(514)}} {
		task := trainer.Adversarial(step, trainer.Objective{Name: "a", Scope: "/a", Optimizer: plainSGD(1)})
		tr, _ := newTrainer(t, trainer.Config{EvalBatchSize: 257, Precision: c.precision}, task)
		metrics, err := tr.Test(t.Context(), c.ds)
		if err != nil || !(math.Abs(metrics["test/a_loss"]-want) < 1e-5) || !(math.Abs(metrics["test/loss"]-want) < 1e-5) {
			t.Errorf("%T, %s: %v, %v, want %g", c.ds, c.precision, metrics, err, want)
		}
	}
}

// unclear is a set with a NaN among the inputs.
type unclear struct{ data.Dataset }

func (u unclear) Batch(indices []int) (inputs, labels []*tensors.Tensor, err error) {
	if inputs, labels, err = u.Dataset.Batch(indices); err == nil {
		err = tensors.MutableFlatData(inputs[0], func(flat []float32) { flat[0] = float32(math.NaN()) })
	}
	return inputs, labels, err
}

// TestSaysOfEvaluations: a test of a part of the set, and one whose loss is NaN, say so.
func TestSaysOfEvaluations(t *testing.T) {
	c := trainer.Config{EvalBatchSize: 4, LimitTestBatches: 2, Loggers: []string{"none"}, Checkpoint: trainer.CheckpointConfig{Off: true}}
	for name, test := range map[string]struct {
		ds   data.Dataset
		want string
	}{
		"a part": {ranktest.Blobs(40), "test: only 8 of the 40 examples of blobs (limit_test_batches: 2)\n"},
		"all":    {ranktest.Blobs(8), ""},
		"NaN":    {unclear{ranktest.Blobs(8)}, "warning: test/loss is NaN: look for NaN or infinite numbers in the examples of blobs"},
	} {
		tr, out := newTrainer(t, c, sgdTask(0.1))
		if _, err := tr.Test(t.Context(), test.ds); err != nil {
			t.Fatal(err)
		}
		said := strings.Contains(out.String(), "only") || strings.Contains(out.String(), "NaN")
		if said != (test.want != "") || !strings.Contains(out.String(), test.want) {
			t.Errorf("%s: it says %q, want %q", name, out, test.want)
		}
	}
}
