package distributed_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/layers/activation"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train"
	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"gonbatch/distributed"
	"gonbatch/distributed/onednn"
	"gonbatch/distributed/pjrt"
	"gonbatch/distributed/ranktest"
	"gonbatch/internal/compilecache"
	"gonbatch/internal/layerhooks"
	"gonbatch/internal/rundir"
	"gonbatch/internal/tier"
)

// convolutional has a convolution and a product that are large enough for kernels.
func convolutional(scope *model.Scope, x *graph.Node) *graph.Node {
	x = activation.Relu(layers.Convolution(scope.In("first"), x).Channels(16).KernelSize(3).PadSame().Done())
	x = activation.Relu(layers.Convolution(scope.In("second"), x).Channels(32).KernelSize(3).Strides(2).PadSame().Done())
	x = activation.Relu(layers.Convolution(scope.In("third"), x).Channels(32).KernelSize(3).PadSame().Done())
	x = activation.Relu(layers.Dense(scope.In("hidden"), graph.Reshape(x, x.Shape().Dimensions[0], -1), true, 512))
	return layers.Dense(scope.In("logits"), x, true, 10)
}

// pictures is a dataset of noise, [n, 16, 16, 3], in 10 classes.
type pictures int

func (p pictures) Name() string { return "pictures" }
func (p pictures) Len() int     { return int(p) }

func (p pictures) Batch(indices []int) (inputs, labels []*tensors.Tensor, err error) {
	var images []float32
	var classes []int32
	for _, index := range indices {
		r := rand.New(rand.NewPCG(1, uint64(index)))
		for range 16 * 16 * 3 {
			images = append(images, r.Float32())
		}
		classes = append(classes, int32(r.IntN(10)))
	}
	return []*tensors.Tensor{tensors.FromFlatDataAndDimensions(images, len(indices), 16, 16, 3)},
		[]*tensors.Tensor{tensors.FromFlatDataAndDimensions(classes, len(indices), 1)}, nil
}

// trainConvolutional prints the losses of a few steps, and how many programs it compiled.
func trainConvolutional(t *testing.T) {
	w := initWorld(t)
	store := model.NewStore()
	store.SetParam("/"+model.ParamInitialSeed, int64(7))
	trainer := train.NewTrainer(w.Backend(), store, convolutional, loss.SparseCategoricalCrossEntropyLogits, w.Optimizer(optimizer.Adam().LearningRate(1e-3).Done()), nil, nil)
	loader, err := w.Loader(pictures(16), distributed.LoaderOptions{BatchSize: 16})
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		for metrics, err := range w.TrainSteps(trainer, loader, nil) {
			if err != nil {
				t.Fatal(err)
			}
			if w.IsMain() {
				fmt.Printf("loss %v\n", tensors.ToScalar[float32](metrics[0]))
			}
		}
	}
	if w.IsMain() {
		fmt.Printf("kernels %d\n", pjrt.KernelCalls())
		told := layerhooks.Convolves(layerhooks.Convolution{Batch: 32, Height: 16, Width: 16, In: 32, Out: 32, Rows: 3, Columns: 3, Stride: [2]int{1, 1}})
		if (pjrt.KernelCalls() > 0) != told {
			t.Errorf("layers are told that a library convolves: %t", told)
		}
	}
	fmt.Printf("compiled %d\n", pjrt.Compilations())
	if library, err := onednn.Open(nil); err == nil {
		fmt.Printf("threads %d\n", library.Threads())
	}
}

// printed returns the numbers that follow a word.
func printed(t *testing.T, out, word string) (numbers []float64) {
	t.Helper()
	for line := range strings.Lines(out) {
		if _, after, ok := strings.Cut(line, word+" "); ok {
			n, err := strconv.ParseFloat(strings.TrimSpace(after), 64)
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			numbers = append(numbers, n)
		}
	}
	return numbers
}

// TestOneDNN: a training run with oneDNN's kernels has the losses that it has without them, on one
// rank, on two, and on the devices of one process. Both kinds of programs are kept side by side in
// the compile cache.
func TestOneDNN(t *testing.T) {
	if ranktest.InRank() {
		trainConvolutional(t)
		return
	}
	library := ranktest.OneDNN(t)
	sizes := map[string]int{"two ranks": 2, "four devices": 1, "one rank": 1, "two devices": 1}
	for _, name := range tier.Fewer([]string{"two ranks", "four devices", "one rank", "two devices"}, 2) {
		ranks := sizes[name]
		t.Run(name, func(t *testing.T) {
			cache, devices := t.TempDir(), map[string]string{"two devices": "2", "four devices": "4"}[name]
			start := func(library string) (losses []float64, kernels, compiled float64) {
				out, err := ranktest.Start(t, ranktest.OpenMPI, ranks, []string{rundir.EnvOneDNN + "=" + library, rundir.EnvCompileCache + "=" + cache, rundir.EnvDevices + "=" + devices})
				losses = printed(t, out, "loss")
				counts, each := printed(t, out, "kernels"), printed(t, out, "compiled")
				if err != nil || len(losses) != 5 || len(counts) != 1 || len(each) != ranks {
					t.Fatalf("%s: %v\n%s", library, err, out)
				}
				for _, n := range each {
					compiled += n
				}
				return losses, counts[0], compiled
			}
			want, none, compiled := start(onednn.Off)
			got, kernels, new := start(library)
			again, _, warm := start(library)
			if none != 0 || kernels < 6 || compiled == 0 || new == 0 || warm != 0 {
				t.Errorf("%v kernels, %v with oneDNN; programs compiled: %v, then %v with oneDNN, then %v", none, kernels, compiled, new, warm)
			}
			for i := range want {
				if math.Abs(got[i]-want[i]) > 1e-4 || got[i] != again[i] {
					t.Errorf("step %d: loss %v, %v with oneDNN, %v with the programs of the cache", i, want[i], got[i], again[i])
				}
			}
			if want[0] <= want[4] {
				t.Errorf("it learns nothing: %v", want)
			}
		})
	}
	// A site that doesn't bind ranks lets them use more CPUs than they were given.
	out, err := ranktest.Start(t, ranktest.OpenMPI, 1, []string{rundir.EnvOneDNN + "=" + library, "SLURM_CPUS_PER_TASK=1"})
	if threads := printed(t, out, "threads"); err != nil || !slices.Equal(threads, []float64{1}) {
		t.Errorf("with one CPU, %v threads compute: %v\n%s", threads, err, out)
	}
	out, err = ranktest.Start(t, ranktest.OpenMPI, 1, []string{rundir.EnvOneDNN + "=/nowhere/libdnnl.so", rundir.EnvCompileCache + "=" + compilecache.Off})
	if err == nil || !strings.Contains(out, "/nowhere/libdnnl.so") || !strings.Contains(out, "onednn-cpu-gomp") {
		t.Errorf("a library that is not there: %v\n%s", err, out)
	}
}
