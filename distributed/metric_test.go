package distributed_test

import (
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
