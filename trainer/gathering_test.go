package trainer_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/dtypes/bfloat16"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/model"

	"gonbatch/data"
	"gonbatch/distributed/ranktest"
	"gonbatch/trainer"
)

// TestRandomGathering: rank 0 gets the predictions of one device, in the same batches, for random
// sizes on any number of ranks. If something fails on one rank, all ranks return an error, and the
// next prediction works.
func TestRandomGathering(t *testing.T) {
	if os.Getenv(ordersFolder) != "" {
		obey[gathered](t)
		return
	}
	n := seeds(t, 40)
	for first := 0; first < n; first += 2 * chunk {
		t.Run(fmt.Sprint("seeds from ", first), func(t *testing.T) {
			w := newWorlds[gathered](t)
			for seed := first; seed < min(n, first+2*chunk); seed++ {
				compareGathered(t, w, uint64(seed))
			}
		})
	}
}

// gathered is an order to predict on rank 0.
type gathered struct {
	Examples, Batch int
	Ragged          bool   // The shape of a batch depends on its examples.
	Fault           string // What fails; empty for nothing.
	At              int    // The example or the batch that fails.
}

// faults are what may fail, with the error of the rank where it does.
var faults = map[string]string{
	"":         "",
	"use":      "trainer: main: predict numbers: the disk is full",
	"load":     "load example %d of numbers: the file is torn",
	"model":    "the model's prediction 0 for ",
	"cancel":   "context canceled",
	"length":   "the number of examples of the dataset is ",
	"no model": "the task has no model to predict with",
}

// compareGathered executes one order on one device and in another world.
func compareGathered(t *testing.T, w *worlds[gathered], seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 8))
	kinds := []worldKind{overTCP(2), overTCP(3), overTCP(4), overTCP(4), {ranktest.OpenMPI, 3, 1}, {ranktest.Torchrun, 1, 2}}
	o := gathered{Examples: 1 + rng.IntN(60), Batch: 1 + rng.IntN(24), Ragged: rng.IntN(5) == 0}
	if rng.IntN(8) == 0 {
		o.Batch = math.MaxInt
	}
	in := kinds[rng.IntN(len(kinds))]
	one := w.do(t, overTCP(1), o)[0]
	if rng.IntN(3) == 0 {
		all := []string{"use", "load", "model", "cancel", "length", "no model"}
		o.Fault = all[rng.IntN(len(all))]
		o.At = rng.IntN(o.Examples)
		if o.Fault == "use" {
			o.At = rng.IntN((o.Examples-1)/min(o.Batch, o.Examples) + 1)
		}
	}
	told := fmt.Sprintf("seed %d: %s, %+v", seed, in, o)
	t.Log(told)
	several := w.do(t, in, o)
	if one.Error != "" {
		t.Fatalf("%s: alone: %s", told, one.Error)
	}
	if o.Fault != "" {
		checkFault(t, told, o, several)
		return
	}
	for rank, result := range several {
		if result.Error != "" || rank > 0 && result.Batches != nil {
			t.Fatalf("%s: rank %d: %+v", told, rank, result)
		}
	}
	if !o.Ragged && !slices.EqualFunc(several[0].Batches, one.Batches, slices.Equal) {
		t.Errorf("%s: batches %v, want %v", told, several[0].Batches, one.Batches)
	}
	if d := distance(several[0].Weights, one.Weights); !(d < 1e-5) || len(one.Weights) != 3*o.Examples {
		t.Errorf("%s: %d predictions differ by %g", told, len(one.Weights), d)
	}
}

// checkFault checks that all ranks have an error, and one the cause.
func checkFault(t *testing.T, told string, o gathered, ranks []outcome) {
	t.Helper()
	want, caused := faults[o.Fault], 0
	if strings.Contains(want, "%d") {
		want = fmt.Sprintf(want, o.At)
	}
	if o.Fault == "length" && len(ranks) == 1 {
		return
	}
	for rank, result := range ranks {
		switch {
		case strings.Contains(result.Error, want):
			caused++
		case !strings.HasPrefix(result.Error, "trainer: main: predict numbers: rank ") || !strings.HasSuffix(result.Error, " failed: see its log"):
			t.Errorf("%s: rank %d: %q", told, rank, result.Error)
		}
	}
	if caused == 0 {
		t.Errorf("%s: no rank says %q: %+v", told, want, ranks)
	}
}

func (o gathered) carryOut(t *testing.T) (result outcome) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ds := &counting{n: o.Examples, torn: -1, ragged: o.Ragged}
	task := trainer.WithPredict(blobTask(plainNet), several)
	switch {
	case o.Fault == "load":
		ds.torn = o.At
	case o.Fault == "model":
		task = trainer.WithPredict(task, func(_ *model.Scope, x *graph.Node) *graph.Node { return graph.ReduceAllSum(x) })
	case o.Fault == "no model":
		task = trainer.Adversarial(pullApart, objective("first", "/a"), objective("second", "/b"))
	case o.Fault == "cancel" && world(t).IsMain():
		cancel()
	case o.Fault == "length" && !world(t).IsMain():
		ds.n++
	}
	tr, _ := newTrainer(t, trainer.Config{EvalBatchSize: o.Batch, Seed: 1, Loggers: []string{"none"}, Checkpoint: trainer.CheckpointConfig{Off: true}}, task)
	next := 0
	err := tr.PredictOnMain(ctx, ds, func(indices []int, predictions []*tensors.Tensor) error {
		if o.Fault == "use" && len(result.Batches) == o.At {
			return errors.New("the disk is full")
		}
		result.Batches = append(result.Batches, slices.Clone(indices))
		for _, index := range indices {
			if index != next {
				return fmt.Errorf("example %d comes after %d", index, next-1)
			}
			next++
		}
		result.Weights = append(result.Weights, floatsOf(t, predictions[0])...)
		return checkSeveral(indices, predictions[1:])
	})
	if err != nil {
		result.Error = err.Error()
	} else if tr.World().IsMain() && next != o.Examples {
		result.Error = fmt.Sprintf("%d of %d examples", next, o.Examples)
	}
	return result
}

// several predicts values of several types: what a trained model would, and the example's number.
func several(scope *model.Scope, inputs []*graph.Node) []*graph.Node {
	x := inputs[0]
	n := x.Shape().Dimensions[0]
	number := graph.ReduceMax(x, -1)
	learnt := layers.Dense(scope.In("y"), graph.MulScalar(graph.Reshape(number, n, 1), 0.01), true, 3)
	half := graph.ConvertDType(x, dtypes.BFloat16)
	pair := graph.ConvertDType(graph.Stack([]*graph.Node{number, graph.MulScalar(number, 3)}, -1), dtypes.Int64)
	return []*graph.Node{learnt, half, graph.GreaterThan(number, graph.Scalar(x.Graph(), x.DType(), 10)), pair, graph.ConvertDType(number, dtypes.Uint8)}
}

// checkSeveral checks all predictions but the first.
func checkSeveral(indices []int, predictions []*tensors.Tensor) error {
	half, large := tensors.MustCopyFlatData[bfloat16.BFloat16](predictions[0]), tensors.MustCopyFlatData[bool](predictions[1])
	pair, small := tensors.MustCopyFlatData[int64](predictions[2]), tensors.MustCopyFlatData[uint8](predictions[3])
	width := predictions[0].Shape().Dimensions[1]
	for row, index := range indices {
		got := fmt.Sprint(slices.Max(half[width*row:][:width]), large[row], pair[2*row:][:2], small[row])
		if want := fmt.Sprint(float64(index), index > 10, []int{index, 3 * index}, index); got != want {
			return fmt.Errorf("example %d: %s, want %s", index, got, want)
		}
	}
	return nil
}

// counting is a dataset of the numbers of its examples.
type counting struct {
	n      int
	torn   int // The example that can't be loaded.
	ragged bool
}

var _ data.Dataset = (*counting)(nil)

func (*counting) Name() string { return "numbers" }
func (d *counting) Len() int   { return d.n }

func (d *counting) Batch(indices []int) (inputs, labels []*tensors.Tensor, err error) {
	width := 1
	if d.ragged {
		width += slices.Max(indices) % 3
	}
	values := make([]float32, len(indices)*width)
	for row, index := range indices {
		if index == d.torn {
			return nil, nil, errors.New("the file is torn")
		}
		values[row*width] = float32(index)
	}
	return []*tensors.Tensor{tensors.FromFlatDataAndDimensions(values, len(indices), width)}, nil, nil
}
