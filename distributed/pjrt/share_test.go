package pjrt_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/go-xla/compute/xla"
	xlapjrt "github.com/gomlx/go-xla/pjrt"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/layers/norm"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/model/initializer"
	"github.com/gomlx/gomlx/ml/train"
	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"gonbatch/distributed/pjrt"
)

const features = 96

// optimizers are GoMLX's optimizers. They differ in what they keep for each variable.
var optimizers = map[string]func() optimizer.Interface{
	"sgd":     func() optimizer.Interface { return optimizer.StochasticGradientDescent().WithLearningRate(0.01).Done() },
	"adam":    func() optimizer.Interface { return optimizer.Adam().LearningRate(0.01).Done() },
	"adamax":  func() optimizer.Interface { return optimizer.Adam().Adamax().LearningRate(0.01).Done() },
	"adamw":   func() optimizer.Interface { return optimizer.Adam().WeightDecay(0.01).LearningRate(0.01).Done() },
	"rmsprop": func() optimizer.Interface { return optimizer.RMSProp().Done() },
}

// newTraining trains a network with all kinds of variables: trained ones, moving averages of batch
// normalization, an average of weights, a random state, and a frozen layer.
func newTraining(t *testing.T, backend compute.Backend, opt optimizer.Interface, seed int64) (*model.Store, *train.Trainer) {
	t.Helper()
	store := model.NewStore()
	if err := store.SetRNGStateFromSeed(seed); err != nil {
		t.Fatal(err)
	}
	store.SetParam("/"+model.ParamInitialSeed, seed)
	network := func(scope *model.Scope, x *graph.Node) *graph.Node {
		x = graph.Tanh(layers.Dense(scope.In("first"), x, true, features))
		x = norm.BatchNorm(scope.In("norm"), x, -1).Done()
		x = layers.DropoutStatic(scope.In("dropout"), x, 0.2)
		frozen := scope.In("frozen").VariableWithShape("weights", x.Shape()).SetTrainable(false)
		x = graph.Mul(x, frozen.NodeValue(x.Graph()))
		x = average(scope.In("average"), x)
		return layers.Dense(scope.In("last"), x, true, 4)
	}
	return store, train.NewTrainer(backend, store, network, loss.SparseCategoricalCrossEntropyLogits, opt, nil, nil)
}

// average multiplies x by a weight, and keeps a moving average of the weight.
func average(scope *model.Scope, x *graph.Node) *graph.Node {
	g := x.Graph()
	weight := scope.VariableWithShape("weight", x.Shape())
	mean := scope.WithInitializer(initializer.Zero).VariableWithShape("mean", x.Shape()).SetTrainable(false)
	if scope.IsTraining(g) {
		mean.SetNodeValue(graph.Add(graph.MulScalar(mean.NodeValue(g), 0.9), graph.MulScalar(graph.StopGradient(weight.NodeValue(g)), 0.1)))
	}
	return graph.Mul(x, weight.NodeValue(g))
}

// step trains on one random batch.
func step(t *testing.T, trainer *train.Trainer, random *rand.Rand) {
	t.Helper()
	const examples = 8
	x, y := make([]float32, examples*features), make([]int32, examples)
	for i := range x {
		x[i] = float32(random.NormFloat64())
	}
	for i := range y {
		y[i] = random.Int32N(4)
	}
	metrics, err := trainer.TrainStep(train.Batch{
		Inputs: []*tensors.Tensor{tensors.FromFlatDataAndDimensions(x, examples, features)},
		Labels: []*tensors.Tensor{tensors.FromFlatDataAndDimensions(y, examples, 1)},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range metrics {
		m.MustFinalizeAll()
	}
}

// look calls f with the memory of each variable.
func look(t *testing.T, store *model.Store, f func(v *model.Variable, data []byte)) {
	t.Helper()
	for v := range store.IterVariables() {
		if err := v.MustValue().ConstBytes(func(data []byte) { f(v, data) }); err != nil {
			t.Fatal(err)
		}
	}
}

func openCPU(t *testing.T) compute.Backend {
	t.Helper()
	if err := pjrt.Load("cpu", pluginPath(t)); err != nil {
		t.Fatal(err)
	}
	xla.EnableAutoInstall(false)
	backend, err := xla.NewWithOptions("cpu", xlapjrt.NamedValuesMap{"cpu_device_count": int64(1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(backend.Finalize)
	return backend
}

// TestUpdatesInPlace: a step doesn't move any variable except scalars.
func TestUpdatesInPlace(t *testing.T) {
	for name, opt := range optimizers {
		t.Run(name, func(t *testing.T) {
			store, trainer := newTraining(t, openCPU(t), opt(), 1)
			random := rand.New(rand.NewPCG(1, 2))
			step(t, trainer, random)
			before := map[string]*byte{}
			look(t, store, func(v *model.Variable, data []byte) { before[v.Path()] = &data[0] })
			for range 3 {
				step(t, trainer, random)
			}
			look(t, store, func(v *model.Variable, data []byte) {
				if !v.Shape().IsScalar() && v.Name() != model.RNGStateVariableName && before[v.Path()] != &data[0] {
					t.Errorf("%s, %s, was moved", v.Path(), v.Shape())
				}
			})
		})
	}
}

// TestAliasSize: by XLA's own figures, a step reuses the memory of everything that it changes.
func TestAliasSize(t *testing.T) {
	var programs []string
	defer pjrt.SetShare(func(module string) (string, int) {
		out, n := pjrt.ShareMemory(module)
		programs = append(programs, out)
		return out, n
	})()
	store, trainer := newTraining(t, openCPU(t), optimizers["adam"](), 1)
	step(t, trainer, rand.New(rand.NewPCG(1, 2)))
	changed := int64(0)
	look(t, store, func(v *model.Variable, data []byte) {
		if !strings.HasPrefix(v.Path(), "/frozen") {
			changed += int64(len(data))
		}
	})
	client := keepIn(t, t.TempDir())
	largest := int64(0)
	for _, program := range programs {
		exec, err := client.Compile().WithStableHLO([]byte(program)).Done()
		if err != nil {
			t.Fatal(err)
		}
		largest = max(largest, exec.OnDeviceMemoryUsageStats.Aliases)
	}
	if largest < changed-200 || largest > changed {
		t.Errorf("XLA aliases %d bytes, the variables that change have %d", largest, changed)
	}
}

// TestSameNumbers: updating in place changes no bit of the values.
func TestSameNumbers(t *testing.T) {
	weights := func(t *testing.T, opt optimizer.Interface, seed int64) map[string][]byte {
		store, trainer := newTraining(t, openCPU(t), opt, seed)
		random := rand.New(rand.NewPCG(uint64(seed), 0))
		for range 5 {
			step(t, trainer, random)
		}
		all := map[string][]byte{}
		look(t, store, func(v *model.Variable, data []byte) { all[v.Path()] = bytes.Clone(data) })
		return all
	}
	for _, name := range []string{"sgd", "adam"} {
		t.Run(name, func(t *testing.T) {
			opt, seed := optimizers[name], rand.Int64()
			inPlace := weights(t, opt(), seed)
			defer pjrt.SetShare(func(module string) (string, int) { return module, 0 })()
			apart := weights(t, opt(), seed)
			for path, want := range apart {
				if !strings.HasPrefix(path, "/metrics") && !bytes.Equal(inPlace[path], want) {
					t.Errorf("seed %d: %s is different", seed, path)
				}
			}
			if len(apart) < 10 {
				t.Errorf("%d variables", len(apart))
			}
		})
	}
}

// TestValueFromHost: a variable that was set by the program, and read by another graph before it is
// trained, is in memory that doesn't belong to XLA. No result may reuse it.
func TestValueFromHost(t *testing.T) {
	backend := openCPU(t)
	store := model.NewStore()
	const size = 1 << 16
	variable := store.RootScope().VariableWithValue("x", make([]float32, size))
	read := model.MustNewExec(backend, store, func(scope *model.Scope, g *graph.Graph) *graph.Node {
		return graph.ReduceAllSum(variable.NodeValue(g))
	})
	add := model.MustNewExec(backend, store, func(scope *model.Scope, g *graph.Graph) *graph.Node {
		variable.SetNodeValue(graph.AddScalar(variable.NodeValue(g), 1))
		return graph.ReduceAllSum(variable.NodeValue(g))
	})
	sum := func(e *model.Exec) float32 { return tensors.ToScalar[float32](e.MustCall()[0]) }
	for round := range 20 {
		want := float32(round * size)
		if err := variable.SetValue(tensors.FromScalarAndDimensions(float32(round), size)); err != nil {
			t.Fatal(err)
		}
		if got := sum(read); got != want {
			t.Fatalf("round %d: the sum is %v, want %v", round, got, want)
		}
		for i := range 3 {
			if got := sum(add); got != want+float32((i+1)*size) {
				t.Fatalf("round %d: the sum is %v, want %v", round, got, want+float32((i+1)*size))
			}
		}
		_ = tensors.FromScalarAndDimensions(float32(-1), size).ToDevice(backend, 0) // This may use the memory that was freed.
	}
}

// TestUnchangedVariable: if an output is computed from an unchanged variable, the two look like a
// new value and an old one. The variable keeps its value, and the variables after it are updated.
func TestUnchangedVariable(t *testing.T) {
	backend := openCPU(t)
	store := model.NewStore()
	const size = 1 << 12
	kept := store.RootScope().VariableWithValue("kept", tensors.FromScalarAndDimensions(float32(3), size))
	counter := store.RootScope().VariableWithValue("counter", make([]float32, 2*size))
	exec := model.MustNewExec(backend, store, func(_ *model.Scope, g *graph.Graph) *graph.Node {
		double := graph.MulScalar(kept.NodeValue(g), 2)
		counter.SetNodeValue(graph.AddScalar(counter.NodeValue(g), 1))
		return double
	})
	for i := range 5 {
		double := exec.MustCall()[0]
		for _, test := range []struct {
			name string
			got  *tensors.Tensor
			want float32
		}{
			{"the output", double, 6}, {"the variable that stays", kept.MustValue(), 3}, {"the counter", counter.MustValue(), float32(i + 1)},
		} {
			for _, got := range tensors.MustCopyFlatData[float32](test.got) {
				if got != test.want {
					t.Fatalf("call %d: %s has %v, want %v", i, test.name, got, test.want)
				}
			}
		}
	}
}

// shared returns the indices of the parameter and the result of each pair.
func shared(module string) map[int]int {
	pairs := map[int]int{}
	out, _ := pjrt.ShareMemory(module)
	head, _, _ := strings.Cut(out, ") ->")
	for i, parameter := range strings.Split(head, "%")[1:] {
		if _, mark, ok := strings.Cut(parameter, "tf.aliasing_output = "); ok {
			var result int
			_, _ = fmt.Sscanf(mark, "%d", &result) // Without a number it stays 0.
			pairs[i] = result
		}
	}
	return pairs
}

// TestPairs: which parameters and results are paired, in programs in go-xla's form.
func TestPairs(t *testing.T) {
	tests := []struct {
		name, parameters, results string
		body                      []string
		want                      map[int]int
	}{
		{"an input", "%x: tensor<8xf32>", "%0", []string{"%0 = add(%x, %x)"}, map[int]int{}},
		{"a variable", "%_x: tensor<8xf32>", "%0", []string{"%0 = add(%_x, %_x)"}, map[int]int{0: 0}},
		{"an unchanged variable", "%_x: tensor<8xf32>", "%_x", nil, map[int]int{}},
		{"a scalar", "%_x: tensor<f32>", "%0", []string{"%0 = add(%_x, %_x)"}, map[int]int{}},
		{"an empty array", "%_x: tensor<0xf32>", "%0", []string{"%0 = add(%_x, %_x)"}, map[int]int{}},
		{"another type", "%_x: tensor<8xf32>", "%0", []string{"%0 = convert(%_x) -> tensor<8xf64>"}, map[int]int{}},
		{"not element by element", "%_x: tensor<8x8xf32>", "%0", []string{"%0 = transpose(%_x)"}, map[int]int{}},
		{"the closest", "%_x: tensor<8xf32>, %_y: tensor<8xf32>", "%1; %0", []string{"%0 = add(%_x, %_x)", "%1 = add(%_y, %0)"}, map[int]int{0: 1, 1: 0}},
		{"a reset", "%_sum: tensor<8xf32>, %_x: tensor<8xf32>", "%0; %1", []string{"%0 = constant()", "%1 = add(%_sum, %_x)"}, map[int]int{0: 1, 1: 0}},
		{"what may be unchanged", "%_x: tensor<8xf32>, %_y: tensor<8xf32>, %_z: tensor<8xf32>", "%0; %1", []string{"%0 = constant()", "%1 = add(%_x, %_x)"}, map[int]int{0: 1}},
		{"an output after them", "%_x: tensor<8xf32>, %_y: tensor<8xf32>", "%1; %0", []string{"%0 = constant()", "%1 = add(%_x, %_x)"}, map[int]int{0: 0}},
		{"sharded", "%_x: tensor<8xf32> { sdy.sharding = #sdy.sharding<@mesh, [{}]> }", "%0 { sdy.sharding = #sdy.sharding<@mesh, [{}]> }", []string{"%0 = add(%_x, %_x)"}, map[int]int{0: 0}},
		{"sharded otherwise", `%_x: tensor<8xf32> { sdy.sharding = #sdy.sharding<@mesh, [{}]> }`, `%0 { sdy.sharding = #sdy.sharding<@mesh, [{"data"}]> }`, []string{"%0 = add(%_x, %_x)"}, map[int]int{}},
	}
	for _, test := range tests {
		if got := shared(text(test.parameters, test.results, test.body)); fmt.Sprint(got) != fmt.Sprint(test.want) {
			t.Errorf("%s: pairs %v, want %v", test.name, got, test.want)
		}
	}
}

// text returns a program. Its values have the type of the first parameter, unless a line gives
// another one.
func text(parameters, results string, body []string) string {
	_, kind, _ := strings.Cut(parameters, ": ")
	kind, _, _ = strings.Cut(kind, ",")
	kind, _, _ = strings.Cut(kind, " {")
	var names, types []string
	for _, result := range strings.Split(results, "; ") {
		name, attributes, _ := strings.Cut(result, " ")
		of := kind
		for i, line := range body {
			line, other, ok := strings.Cut(line, " -> ")
			if body[i] = line; ok {
				of = other
			}
		}
		names, types = append(names, name), append(types, strings.TrimSpace(of+" "+attributes))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "module @m {\n  func.func @main(%s) -> (%s) {\n", parameters, strings.Join(types, ", "))
	for _, line := range body {
		name, rest, _ := strings.Cut(line, " = ")
		operation, operands, _ := strings.Cut(rest, "(")
		fmt.Fprintf(&b, "    %s = %q(%s : () -> %s\n", name, "stablehlo."+operation, operands, kind)
	}
	fmt.Fprintf(&b, "    \"stablehlo.return\"(%s) : () -> ()\n  }\n}\n", strings.Join(names, ", "))
	return b.String()
}

// TestMemoryStays: the memory of a training run doesn't grow with the number of steps.
func TestMemoryStays(t *testing.T) {
	_, trainer := newTraining(t, openCPU(t), optimizers["adam"](), 1)
	random := rand.New(rand.NewPCG(1, 2))
	train := func(steps int) int64 {
		for range steps {
			step(t, trainer, random)
		}
		debug.FreeOSMemory()
		return resident(t)
	}
	const steps = 1000
	before := train(100)
	after := train(steps)
	smallest := int64(steps * 4 * features * features) // What it would grow by if each step leaked one variable.
	if grown := after - before; grown > smallest/4 {
		t.Errorf("%d steps took %d KB more", steps, grown>>10)
	}
}

// resident returns the resident memory of this process, in bytes.
func resident(t *testing.T) int64 {
	t.Helper()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	var size, pages int64
	if _, err := fmt.Sscan(string(text), &size, &pages); err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}
