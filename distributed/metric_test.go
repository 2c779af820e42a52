package distributed_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/dtypes/bfloat16"
	"github.com/gomlx/compute/dtypes/float16"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train"
	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/gomlx/gomlx/ml/train/metric"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"gonbatch/distributed/ranktest"
)

// ofItsOwn is a metric that keeps its state in an unknown way.
type ofItsOwn struct{ metric.Interface }

func (ofItsOwn) Name() string { return "Own" }

// wrapped is a mean metric of another type.
type wrapped struct{ *metric.MeanMetric }

// classList records the classes in the order in which it sees them. Its value is their number.
type classList struct {
	metric.Interface
	seen []int32
}

func (*classList) Name() string { return "Classes" }

func (*classList) Reset(*model.Scope) {}

func (*classList) UpdateGraph(_ *model.Scope, labels, _ []*graph.Node) *graph.Node { return labels[0] }

func (c *classList) UpdateGo(value *tensors.Tensor) {
	c.seen = append(c.seen, tensors.MustCopyFlatData[int32](value)...)
}

func (c *classList) ReadGo() *tensors.Tensor { return tensors.FromScalar(float64(len(c.seen))) }

// TestMetricsOverRanks: metrics that can be combined over ranks get the results in the order of the
// examples, and all others are refused.
func TestMetricsOverRanks(t *testing.T) {
	ranktest.RunWith(t, []ranktest.Launcher{ranktest.Torchrun}, 2, func(t *testing.T) {
		w := initWorld(t)
		base := metric.NewMeanMetric("Mean", "#", "", nil, nil)
		for name, test := range map[string]struct {
			metric metric.Interface
			want   string
		}{
			"own":     {ofItsOwn{base}, `the metric "Own" (distributed_test.ofItsOwn) keeps its own state, which can't be combined over 2 ranks: use metric.NewMeanMetric, or implement metric.UpdateGo`},
			"mean":    {base, ""},
			"wrapped": {wrapped{base}, ""},
			"in Go":   {&classList{}, ""},
			"median":  {metric.NewMedianMetric("Median", "", "", nil, nil), ""},
			"last":    {metric.NewBaseMetric("Last", "", "", nil, nil), "covers only the last batch"},
			"moving":  {metric.NewExponentialMovingAverageMetric("Moving", "", "", nil, nil, 0.1), "is a moving average"},
		} {
			err := w.CheckMetrics([]metric.Interface{base, test.metric})
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s: got %v, want %q", name, err, test.want)
			}
		}
		inOrder := &classList{Interface: base}
		trainer := train.NewTrainer(w.Backend(), model.NewStore(), smallNet, loss.SparseCategoricalCrossEntropyLogits, w.Optimizer(optimizer.Adam().Done()), nil, []metric.Interface{inOrder})
		metrics, err := w.Evaluate(t.Context(), trainer, ranktest.Blobs(21), 4)
		if err != nil {
			t.Fatal(err)
		}
		var want []int32
		for i := range 21 {
			_, labels, err := ranktest.Blobs(21).Batch([]int{i})
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, tensors.MustCopyFlatData[int32](labels[0])...)
		}
		if n, ok := metrics.Get("Classes"); !ok || n != 21 || !slices.Equal(inOrder.seen, want) {
			t.Errorf("rank %d: %v examples with the classes %v, want %v", w.Rank(), n, inOrder.seen, want)
		}
	})
}

// alike are that many examples with the same input and no label to learn.
type alike int

func (alike) Name() string { return "alike" }
func (a alike) Len() int   { return int(a) }

func (alike) Batch(indices []int) (inputs, labels []*tensors.Tensor, err error) {
	ones := slices.Repeat([]float32{1}, len(indices))
	return []*tensors.Tensor{tensors.FromFlatDataAndDimensions(ones, len(indices), 1)}, []*tensors.Tensor{tensors.FromFlatDataAndDimensions(ones, len(indices), 1)}, nil
}

// TestMeanOfManyBatches: the mean of many batches, whose sum float32 can't hold, has no error that
// grows with their number. Metrics that count batches instead of examples are exact too.
func TestMeanOfManyBatches(t *testing.T) {
	ranktest.RunWith(t, []ranktest.Launcher{ranktest.Torchrun}, 2, func(t *testing.T) {
		w := initWorld(t)
		const value = 1e6 + 0.1
		constant := func(_ *model.Scope, _, predictions []*graph.Node) *graph.Node {
			return graph.Scalar(predictions[0].Graph(), dtypes.Float32, value)
		}
		first := func(_ *model.Scope, _, predictions []*graph.Node) *graph.Node {
			return graph.Scalar(predictions[0].Graph(), dtypes.Float32, float64(predictions[0].Shape().Dimensions[0]))
		}
		net := func(scope *model.Scope, x *graph.Node) *graph.Node { return graph.MulScalar(x, 2) }
		trainer := train.NewTrainer(w.Backend(), model.NewStore(), net, loss.MeanSquaredError, w.Optimizer(optimizer.Adam().Done()), nil, []metric.Interface{
			metric.NewMeanMetric("Constant", "#c", "c", constant, nil), metric.NewMeanMetric("Size", "#s", "s", first, nil).WithDynamicBatch(false),
		})
		const examples = 15_003 // 7,501 and 7,502 for the ranks, in batches of 2.
		metrics, err := w.Evaluate(t.Context(), trainer, alike(examples), 2)
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]float64{"Constant": float64(float32(value)), "Size": examples / 7502.0} {
			if got, _ := metrics.Get(name); !(math.Abs(got-want) <= 1e-7*want) {
				t.Errorf("%s: the mean is %.10g, want %.10g", name, got, want)
			}
		}
	})
}

// TestAverageOfHalf: the mean of half-precision values is right even if their sum overflows.
func TestAverageOfHalf(t *testing.T) {
	ranktest.RunWith(t, []ranktest.Launcher{ranktest.Torchrun}, 2, func(t *testing.T) {
		w := initWorld(t)
		store := model.NewStore()
		mean := func(dtype dtypes.DType) any {
			exec, err := model.NewExec(w.Backend(), store, func(_ *model.Scope, x *graph.Node) *graph.Node {
				return w.AverageGradients(store, []*graph.Node{graph.ConvertDType(x, dtype)})[0]
			})
			if err != nil {
				t.Fatal(err)
			}
			all, err := exec.Exec([]float32{60000, -60000, 1})
			if err != nil {
				t.Fatal(err)
			}
			return all[0].Value()
		}
		if got := mean(dtypes.Float16).([]float16.Float16); got[0].Float32() != 60000 || got[1].Float32() != -60000 || got[2].Float32() != 1 {
			t.Errorf("float16: the mean is %v", got)
		}
		if got := mean(dtypes.BFloat16).([]bfloat16.BFloat16); got[0].Float32() != bfloat16.FromFloat32(60000).Float32() || got[2].Float32() != 1 {
			t.Errorf("bfloat16: the mean is %v", got)
		}
	})
}
