package pjrt_test

import (
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	xlapjrt "github.com/gomlx/go-xla/pjrt"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train"
	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"gonbatch/distributed/pjrt"
	"gonbatch/distributed/ranktest"
)

// TestOptimizersByKernels: a training by kernels has the weights that XLA's has, for all of GoMLX's
// optimizers, and moves no variable. Kernels compute the updates of Adam and AdamW, as GoMLX writes
// them.
func TestOptimizersByKernels(t *testing.T) {
	ranktest.RunWith(t, []ranktest.Launcher{ranktest.OpenMPI}, 1, func(t *testing.T) {
		backend := openKernels(t)
		pjrt.SetMinUpdate(1)
		pjrt.SetMinTrained(1)
		for name, opt := range optimizers {
			fit := func(kernels bool) (values map[string][]float64, replaced int64) {
				counted := pjrt.CountKernels(kernels)
				store, trainer := newTraining(t, backend, opt(), 1)
				random := rand.New(rand.NewPCG(1, 2))
				step(t, trainer, random)
				before := addresses(t, store)
				for range 5 {
					step(t, trainer, random)
				}
				for path, address := range addresses(t, store) {
					if before[path] != address {
						t.Errorf("%s: %s was moved", name, path)
					}
				}
				return valuesOf(t, store), counted()
			}
			want, _ := fit(false)
			got, replaced := fit(true)
			for path, values := range want {
				if len(got[path]) != len(values) {
					t.Errorf("%s: %s has %d values, want %d", name, path, len(got[path]), len(values))
					continue
				}
				for i, x := range values {
					if !(math.Abs(got[path][i]-x) <= 1e-4*(1+math.Abs(x))) {
						t.Errorf("%s: %s has %g, want %g", name, path, got[path][i], x)
						break
					}
				}
			}
			// Two layers, each with a product and its gradients; sums; and six or more trained
			// variables.
			least := int64(8)
			if name == "adam" || name == "adamw" {
				least += 6
			}
			t.Logf("%s: kernels compute %d operations", name, replaced)
			if replaced < least {
				t.Errorf("%s: kernels compute %d operations, want at least %d", name, replaced, least)
			}
		}
	})
}

// addresses returns where each variable is, except scalars.
func addresses(t *testing.T, store *model.Store) map[string]*byte {
	t.Helper()
	all := map[string]*byte{}
	look(t, store, func(v *model.Variable, data []byte) {
		if !v.Shape().IsScalar() && v.Name() != model.RNGStateVariableName {
			all[v.Path()] = &data[0]
		}
	})
	return all
}

// valuesOf returns the values of the float32 variables.
func valuesOf(t *testing.T, store *model.Store) map[string][]float64 {
	t.Helper()
	all := map[string][]float64{}
	for v := range store.IterVariables() {
		if strings.HasPrefix(v.Path(), "/metrics/") { // Their names are random.
			continue
		}
		v.MustValue().MustConstFlatData(func(data any) {
			if data, ok := data.([]float32); ok {
				for _, x := range data {
					all[v.Path()] = append(all[v.Path()], float64(x))
				}
			}
		})
	}
	return all
}

// TestOrdered: XLA copies no weights of dense layers, which it did without an order of the
// products, and the order computes no product that isn't used.
func TestOrdered(t *testing.T) {
	ranktest.RunWith(t, []ranktest.Launcher{ranktest.OpenMPI}, 1, func(t *testing.T) {
		backend := openKernels(t)
		const width = 512
		programs := trainDeep(t, backend, 6, width, 4)
		client := keepIn(t, t.TempDir())
		var with, without int64
		for _, program := range programs {
			with = max(with, temporaryBytes(t, client, program))
			pjrt.WithoutOrder(func() { without = max(without, temporaryBytes(t, client, program)) })
		}
		// With the order, temporary memory has a gradient or two at once; without, copies of the
		// weights of all layers but the first, which has no gradient of its inputs.
		const weights = 4 * width * width
		t.Logf("temporary memory, in matrices of weights: %.2f, without an order %.2f", float64(with)/weights, float64(without)/weights)
		if with > without-2*weights {
			t.Errorf("%d bytes of temporary memory, %d without an order", with, without)
		}
		step, _ := pjrt.WithKernels(stepOf(programs))
		checkReaders(t, step)
	})
}

var orderedProduct = regexp.MustCompile(`("stablehlo\.custom_call"\(%\w+, %\w+, %\w+), (%\w+)(\) \{ call_target_name = "gonbatch_product)`)

// checkReaders checks that products have an order, after products that are used for something else
// too.
func checkReaders(t *testing.T, program string) {
	t.Helper()
	readers := pjrt.ReadersIn(orderedProduct.ReplaceAllString(program, "$1$3"))
	all := orderedProduct.FindAllStringSubmatch(program, -1)
	if len(all) < 5 {
		t.Errorf("%d products have an order", len(all))
	}
	for _, m := range all {
		if readers[m[2]] == 0 {
			t.Errorf("%s is computed only for the order", m[2])
		}
	}
}

// TestReadersIn: what a statement of several results needs is read if one of them is, and only
// statements that are needed count.
func TestReadersIn(t *testing.T) {
	readers := pjrt.ReadersIn(`module @m {
  func.func @main(%0: tensor<2xf32>, %3: tensor<f32>) -> (tensor<2xf32>, tensor<2xf32>) {
    %1 = "stablehlo.negate"(%0) : (tensor<2xf32>) -> tensor<2xf32>
    %2 = "stablehlo.abs"(%0) : (tensor<2xf32>) -> tensor<2xf32>
    %4, %5 = "func.call"(%1, %3) { callee = @start } : (tensor<2xf32>, tensor<f32>) -> (tensor<2xf32>, tensor<f32>)
    %6, %7 = "func.call"(%4, %5) { callee = @finish } : (tensor<2xf32>, tensor<f32>) -> (tensor<2xf32>, tensor<f32>)
    %8 = "stablehlo.multiply"(%6, %6) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    "stablehlo.return"(%6, %8) : (tensor<2xf32>, tensor<2xf32>) -> ()
  }
}
`)
	for name, want := range map[string]int{"%0": 1, "%1": 1, "%2": 0, "%4": 1, "%6": 2, "%8": 1, "%9": 0} {
		if readers[name] != want {
			t.Errorf("%d statements read %s, want %d", readers[name], name, want)
		}
	}
}

// stepOf returns the program of the step: the others compute initial values, and are shorter.
func stepOf(programs []string) string {
	return slices.MaxFunc(programs, func(a, b string) int { return len(a) - len(b) })
}

// temporaryBytes returns how much temporary memory a program takes.
func temporaryBytes(t *testing.T, client *xlapjrt.Client, program string) int64 {
	t.Helper()
	exec, err := client.Compile().WithStableHLO([]byte(program)).Done()
	if err != nil {
		t.Fatal(err)
	}
	return exec.OnDeviceMemoryUsageStats.Temporary
}

// trainDeep takes a step with a network of dense layers, and returns the programs without kernels.
func trainDeep(t *testing.T, backend compute.Backend, depth, width, batch int) (programs []string) {
	t.Helper()
	defer pjrt.SetShare(func(module string) (string, int) {
		out, n := pjrt.ShareMemory(module)
		programs = append(programs, out)
		return out, n
	})()
	store := model.NewStore()
	network := func(scope *model.Scope, x *graph.Node) *graph.Node {
		for i := range depth {
			x = graph.Tanh(layers.Dense(scope.In("layer_%d", i), x, true, width))
		}
		return x
	}
	trainer := train.NewTrainer(backend, store, network, loss.MeanSquaredError, optimizer.Adam().Done(), nil, nil)
	x := tensors.FromScalarAndDimensions(float32(0.5), batch, width)
	if _, err := trainer.TrainStep(train.Batch{Inputs: []*tensors.Tensor{x}, Labels: []*tensors.Tensor{tensors.FromScalarAndDimensions(float32(0.1), batch, width)}}); err != nil {
		t.Fatal(err)
	}
	return programs
}
