package distributed_test

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train"
	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"gonbatch/distributed"
	"gonbatch/distributed/pjrt"
	"gonbatch/distributed/ranktest"
	"gonbatch/internal/plural"
	"gonbatch/internal/rundir"
)

// travelling makes the gradient of each variable travel while others are computed.
var travelling = []string{"BUCKET_BYTES=1", rundir.EnvOverlap + "=" + rundir.OverlapOn}

// TestOverlapSameBits: the weights are the same, to the bit, whether or not the gradients travel
// while others are computed.
func TestOverlapSameBits(t *testing.T) {
	if ranktest.InRank() {
		trainRank(t)
		return
	}
	tests := []struct {
		launcher ranktest.Launcher
		ranks    int
	}{{ranktest.OpenMPI, 2}, {ranktest.MPICH, 3}, {ranktest.Torchrun, 3}}
	for _, test := range tests {
		t.Run(test.launcher.Name, func(t *testing.T) {
			got, _ := run(t, test.launcher, test.ranks, travelling...)
			want, _ := run(t, test.launcher, test.ranks, "BUCKET_BYTES=1", rundir.EnvOverlap+"="+rundir.OverlapOff)
			if !reflect.DeepEqual(got.Weights, want.Weights) {
				t.Error("the weights differ")
			}
		})
	}
}

// layerCount is the number of layers of a deep network, and width the outputs of a layer: each
// layer's weights have another size.
const layerCount = 8

func width(layer int) int { return 300 + 20*layer }

// deepStep returns a function that takes a step of the deep network, which is compiled. Each
// gradient has its own all-reduce.
func deepStep(t *testing.T, w *distributed.World) (step func()) {
	t.Helper()
	distributed.SetBucketBytes(1)
	network := func(scope *model.Scope, x *graph.Node) *graph.Node {
		for i := range layerCount {
			x = graph.Tanh(layers.Dense(scope.In("layer_%d", i), x, true, width(i)))
		}
		return x
	}
	trainer := train.NewTrainer(w.Backend(), model.NewStore(), network, loss.MeanSquaredError, w.Optimizer(optimizer.Adam().Done()), nil, nil)
	step = func() {
		x, y := tensors.FromScalarAndDimensions(float32(0.5), 1024, 300), tensors.FromScalarAndDimensions(float32(0.1), 1024, width(layerCount-1))
		if _, err := trainer.TrainStep(train.Batch{Inputs: []*tensors.Tensor{x}, Labels: []*tensors.Tensor{y}}); err != nil {
			t.Fatal(err)
		}
	}
	step()
	return step
}

// TestSumsAtEnd: within a machine, the ranks compute all gradients before they sum the first one.
func TestSumsAtEnd(t *testing.T) {
	launchers := []ranktest.Launcher{ranktest.OpenMPI.With("", rundir.EnvOneDNN+"="+ranktest.OneDNN(t))}
	ranktest.RunWith(t, launchers, 2, func(t *testing.T) {
		step := deepStep(t, initWorld(t))
		pjrt.StartTrace(1000)
		step()
		operations, _ := pjrt.StopTrace()
		products, sums := 0, 0
		for _, o := range operations { // In the order of their ends.
			switch o.Kind {
			case pjrt.WholeCollective:
				sums++
			case pjrt.Product:
				products++
				if sums > 0 {
					t.Errorf("%s comes after %s", o.Name, plural.Of(sums, "sum"))
				}
			}
		}
		if products < 3*layerCount-1 || sums < 2*layerCount {
			t.Errorf("a step has %s and %s", plural.Of(products, "product"), plural.Of(sums, "sum"))
		}
	})
}

// TestOverlapOrder: the gradients of the last layers start first, on all ranks, and travel while
// those of the first are computed.
func TestOverlapOrder(t *testing.T) {
	launchers := []ranktest.Launcher{ranktest.OpenMPI.With("", travelling...), ranktest.Torchrun.With("", travelling...)}
	ranktest.RunWith(t, launchers, 2, func(t *testing.T) {
		w := initWorld(t)
		step := deepStep(t, w)
		var want []string
		for i := layerCount - 1; i >= 0; i-- {
			want = append(want, fmt.Sprintf("start all-reduce %.1f KiB float32, sum", float64(4*width(max(0, i-1))*width(i))/1024))
		}
		travelled := false // On a busy machine, the thread may get no time in a step.
		for range 10 {
			pjrt.StartTrace(1000)
			step()
			names, early := startsOfWeights()
			travelled = travelled || early
			if !slices.Equal(names, want) {
				t.Errorf("rank %d starts %q, want %q", w.Rank(), names, want)
			}
		}
		if !travelled {
			t.Errorf("rank %d: in no step, a gradient travels before the last one starts", w.Rank())
		}
	})
}

// startsOfWeights ends the recording of a step. It returns the sums of weights, in the order in
// which they have started, and reports whether one has travelled before the last one started.
func startsOfWeights() (names []string, early bool) {
	operations, _ := pjrt.StopTrace()
	slices.SortFunc(operations, func(a, b pjrt.Operation) int { return cmp.Compare(a.Begin, b.Begin) })
	travels := false
	for _, o := range operations {
		switch o.Kind {
		case pjrt.TravellingSum:
			travels = true
		case pjrt.StartOfSum:
			early = early || travels
			if !strings.Contains(o.Name, " 1.") { // Biases have less than 2 KiB.
				names = append(names, o.Name)
			}
		}
	}
	return names, early
}

// TestOverlapChoice: gradients travel while others are computed if the ranks are on several
// machines and have a core to wait on, or if all ranks say so.
func TestOverlapChoice(t *testing.T) {
	tests := []struct {
		name     string
		choices  []string
		machines []string
		busy     bool
		want     bool
		err      string
	}{
		{"one machine", []string{"", "", ""}, []string{"a", "a", "a"}, false, false, ""},
		{"two machines", []string{"", "", ""}, []string{"a", "a", "b"}, false, true, ""},
		{"two machines, and MPI on one core", []string{"", ""}, []string{"a", "b"}, true, false, ""},
		{"on with MPI on one core", []string{"on", "on"}, []string{"a", "b"}, true, true, ""},
		{"on", []string{"on", "on"}, []string{"a", "a"}, false, true, ""},
		{"off", []string{"off", "off"}, []string{"a", "b"}, false, false, ""},
		{"another word", []string{"yes", "yes"}, []string{"a", "b"}, false, false, `GONBATCH_OVERLAP="yes": it must be on or off`},
		{"different choices", []string{"on", ""}, []string{"a", "b"}, false, false, `GONBATCH_OVERLAP="" on rank 1 and "on" on rank 0: all ranks need the same`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := distributed.OverlapOf(test.choices, test.machines, test.busy)
			if got != test.want || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("%v, %v; want %v, %q", got, err, test.want, test.err)
			}
		})
	}
}

// TestOverlapCompiled: a program in which gradients travel is another one for the compile cache.
func TestOverlapCompiled(t *testing.T) {
	if ranktest.InRank() {
		trainRank(t)
		fmt.Printf("compiled %d programs\n", pjrt.Compilations())
		return
	}
	folder := t.TempDir()
	for _, choice := range []string{rundir.OverlapOff, rundir.OverlapOn} {
		_, out := run(t, ranktest.Torchrun, 2, rundir.EnvCompileCache+"="+folder, rundir.EnvOverlap+"="+choice)
		if compiled(t, out, 2) == 0 {
			t.Errorf("with %s=%s, no program was compiled", rundir.EnvOverlap, choice)
		}
	}
}
