package aot_test

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/layers/activation"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train"
	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"gonbatch/distributed"
	"gonbatch/distributed/aot/aottest"
	"gonbatch/distributed/memory"
	"gonbatch/internal/bounded"
	"gonbatch/internal/forecast"
	"gonbatch/internal/rundir"
	"gonbatch/internal/tier"
	"gonbatch/models"
	"gonbatch/models/cnn"
)

// shaped is a dataset of zeros.
type shaped struct{ dimensions []int }

func (shaped) Name() string { return "zeros" }
func (shaped) Len() int     { return 1 << 14 }
func (s shaped) Batch(indices []int) (inputs, labels []*tensors.Tensor, err error) {
	all := 1
	for _, d := range s.dimensions {
		all *= d
	}
	x := tensors.FromFlatDataAndDimensions(make([]float32, len(indices)*all), append([]int{len(indices)}, s.dimensions...)...)
	y := tensors.FromFlatDataAndDimensions(make([]int32, len(indices)), len(indices), 1)
	return []*tensors.Tensor{x}, []*tensors.Tensor{y}, nil
}

// The sizes of an MLP that can be counted by hand.
const mlpIn, mlpHidden, mlpOut, mlpBatch = 1024, 4096, 512, 2048

func mlp(scope *model.Scope, x *graph.Node) *graph.Node {
	x = activation.Relu(layers.Dense(scope.In("hidden"), x, true, mlpHidden))
	return layers.Dense(scope.In("out"), x, true, mlpOut)
}

// wide takes much memory for each example.
func wide(scope *model.Scope, x *graph.Node) *graph.Node {
	x = activation.Relu(layers.Dense(scope.In("hidden"), x, true, 1<<16))
	return layers.Dense(scope.In("out"), x, true, 8)
}

// The sizes of a network whose memory is that of its activations.
const pointwiseWidth, pointwiseLayers = 4096, 8

// pointwise has no products and no convolutions, for which XLA calls kernels on CPUs that take
// memory of their own.
func pointwise(scope *model.Scope, x *graph.Node) *graph.Node {
	batch := x.Shape().Dimensions[0]
	x = graph.Concatenate(slices.Repeat([]*graph.Node{x}, pointwiseWidth/x.Shape().Dimensions[1]), -1)
	for i := range pointwiseLayers {
		layer := scope.In("layer %d", i)
		scale := layer.VariableWithShape("scale", shapes.Make(x.DType(), 1, pointwiseWidth)).NodeValue(x.Graph())
		x = graph.Tanh(graph.Mul(x, graph.BroadcastToShape(scale, x.Shape())))
	}
	return graph.ReduceMean(graph.Reshape(x, batch, 8, -1), -1)
}

// convolve ends convolutions of many channels.
func convolve(scope *model.Scope, x *graph.Node, convolution func(*model.Scope, *graph.Node) *graph.Node) *graph.Node {
	for _, name := range []string{"a", "b"} {
		x = activation.Relu(convolution(scope.In("%s", name), x))
	}
	return layers.Dense(scope.In("out"), graph.Reshape(x, x.Shape().Dimensions[0], -1), true, 8)
}

// ours has the layers that are faster on CPUs, and gomlx those that they equal on GPUs.
func ours(scope *model.Scope, x *graph.Node) *graph.Node {
	return convolve(scope, x, func(scope *model.Scope, x *graph.Node) *graph.Node {
		return cnn.Convolution(scope, x).Channels(128).KernelSize(3).PadSame().Done()
	})
}

func gomlx(scope *model.Scope, x *graph.Node) *graph.Node {
	return convolve(scope, x, func(scope *model.Scope, x *graph.Node) *graph.Node {
		return layers.Convolution(scope, x).Channels(128).KernelSize(3).PadSame().Done()
	})
}

// forecastModels are those that are forecast, with their input and their batch a rank.
var forecastModels = map[string]struct {
	model func(*model.Scope, *graph.Node) *graph.Node
	input []int
	batch int
	plain bool // Reports whether the world has no part in it.
}{
	"mlp":       {mlp, []int{mlpIn}, mlpBatch, false},
	"wide":      {wide, []int{16}, 1 << 14, false},
	"cnn":       {models.MNIST, []int{28, 28, 1}, 64, false},
	"ours":      {ours, []int{8, 8, 128}, 16, false},
	"gomlx":     {gomlx, []int{8, 8, 128}, 16, false},
	"resnet18":  {models.ResNet18(10), []int{32, 32, 3}, 32, false},
	"plain":     {mlp, []int{8}, 1, true},
	"pointwise": {pointwise, []int{16}, 2048, false},
}

// forecastTrain trains a model in a process that a forecast ends. Without a forecast it prints the
// most memory that its steps take.
func forecastTrain(t *testing.T, name string) {
	w, err := distributed.Init()
	if err != nil {
		t.Fatal(err)
	}
	m := forecastModels[name]
	network := func(scope *model.Scope, x *graph.Node) *graph.Node {
		w.SyncBatchNorm(x.Graph())
		return m.model(scope, x)
	}
	adam := optimizer.Adam().Done()
	if !m.plain {
		adam = w.Optimizer(adam)
	}
	trainer := train.NewTrainer(w.Backend(), model.NewStore(), network, loss.SparseCategoricalCrossEntropyLogits, adam, nil, nil)
	l, err := w.Loader(shaped{m.input}, distributed.LoaderOptions{BatchSize: m.batch * w.Size()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Loader(shaped{m.input}, distributed.LoaderOptions{BatchSize: w.Size()}); err != nil { // For a test, later.
		t.Fatal(err)
	}
	steps, least := 0, int64(math.MaxInt64)
	for metrics, err := range w.TrainSteps(trainer, l, nil) {
		if err != nil {
			t.Fatal(err)
		}
		_ = metrics[0].Value() // It ends when the step has.
		steps++
		// The first step's peak has what compiling takes. On a busy machine, some steps begin
		// before the buffers of the one before are free.
		if peak := memory.Peak(); steps > 1 {
			least = min(least, peak)
		}
		if steps == 8 && os.Getenv(rundir.EnvForecast) == "" {
			fmt.Printf("\npeak %d\n", least)
			return
		}
	}
	t.Fatalf("the program came to the end of its %d steps", steps)
}

// process is another process that trains a model.
func process(name string, env ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], "-test.run=^TestForecast$", "-test.count=1")
	cmd.Env = append(os.Environ(), "FORECAST_MODEL="+name, rundir.EnvPlatform+"=cpu")
	cmd.Env = append(cmd.Env, env...)
	return cmd
}

// answer has another process train a model.
func answer(t *testing.T, name string, q forecast.Question, env ...string) forecast.Answer {
	t.Helper()
	aottest.Compiler(t)
	path := filepath.Join(t.TempDir(), "question.json")
	if err := rundir.WriteJSON(path, q); err != nil {
		t.Fatal(err)
	}
	out, err := bounded.CombinedOutput(process(name, append(env, rundir.EnvForecast+"="+path)...))
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := rundir.ReadJSON(path, &q); err != nil {
		t.Fatal(err)
	}
	if q.Answer == nil {
		t.Fatalf("no answer\n%s", out)
	}
	return *q.Answer
}

// ask forecasts a model's step.
func ask(t *testing.T, name string, q forecast.Question, env ...string) forecast.Answer {
	t.Helper()
	got := answer(t, name, q, env...)
	if got.Error != "" {
		t.Fatal(got.Error)
	}
	return got
}

// TestForecastPlain: a program that trains without the world's optimizer is ended, and told.
func TestForecastPlain(t *testing.T) {
	q := h100s(2, 4)
	q.PlainSteps = 20
	got := answer(t, "plain", q)
	for _, want := range []string{"has changed variables 20 times", "train with package trainer or World.Optimizer"} {
		if !strings.Contains(got.Error, want) {
			t.Errorf("got %q, want %q", got.Error, want)
		}
	}
}

func h100s(nodes, gpus int) forecast.Question {
	return forecast.Question{World: forecast.World{Target: "h100", Nodes: nodes, GPUsPerNode: gpus}}
}

// TestForecast: a forecast agrees with what can be counted by hand.
func TestForecast(t *testing.T) {
	if name := os.Getenv("FORECAST_MODEL"); name != "" {
		forecastTrain(t, name)
		return
	}
	got := ask(t, "mlp", h100s(2, 4))
	const float = 4
	weights := mlpIn*mlpHidden + mlpHidden*mlpOut
	parameters := float * (weights + mlpHidden + mlpOut)
	near := func(what string, got, want float64) {
		t.Helper()
		t.Logf("%s: %.4g, by hand %.4g", what, got, want)
		if math.Abs(got-want) > want/10 {
			t.Errorf("%s: %.4g is more than 10 %% off the %.4g that it is by hand", what, got, want)
		}
	}
	t.Logf("%+v", got)
	near("parameters", float64(got.Memory.Parameters), float64(parameters))
	near("optimizer", float64(got.Memory.Optimizer), float64(2*parameters))
	near("batch", float64(got.Memory.Batch), float*mlpBatch*mlpIn)
	near("bytes reduced", float64(got.Reduced), float64(parameters))
	// Forward, the gradients of the weights, and that of the hidden layer.
	// The hidden layer before and after its activation, and the gradients of its weights. Those of
	// the last layer are reduced first, and have updated their parameters in place by then.
	near("activations", float64(got.Memory.Activations), float64(2*float*mlpBatch*mlpHidden+float*mlpIn*mlpHidden))
	if got.Memory.Copies > 1<<10 {
		t.Errorf("%d bytes of results take the place of nothing", got.Memory.Copies)
	}
	near("FLOPs", got.FLOPs, 2*mlpBatch*float64(2*weights+mlpHidden*mlpOut))
	if got.Batch != 8*mlpBatch || got.Half {
		t.Errorf("got %+v", got)
	}
}

// TestForecastMeasured: a forecast for a GPU is what the step really takes on a CPU, if XLA takes
// least memory there too: by default it schedules for many cores, which takes more.
func TestForecastMeasured(t *testing.T) {
	const flags = "XLA_FLAGS=--xla_cpu_enable_concurrency_optimized_scheduler=false"
	type measured struct {
		model string
		// less and more limit the ratio of the real peak to the forecast.
		less, more float64
	}
	for _, tt := range tier.Fewer([]measured{
		{"pointwise", 0.9, 1.1},
		{"mlp", 1, 2}, // On CPUs, the kernels for products copy what they multiply.
	}, 1) {
		t.Run(tt.model, func(t *testing.T) {
			said := ask(t, tt.model, h100s(1, 1)).Memory
			out, err := bounded.CombinedOutput(process(tt.model, rundir.EnvOneDNN+"=off", rundir.EnvCompileCache+"=off", flags))
			found := regexp.MustCompile(`(?m)^peak (\d+)$`).FindSubmatch(out)
			if err != nil || found == nil {
				t.Fatalf("%v\n%s", err, out)
			}
			peak, err := strconv.ParseFloat(string(found[1]), 64)
			if err != nil {
				t.Fatal(err)
			}
			ratio := peak / float64(said.Total)
			t.Logf("%.1f MiB said, %.1f MiB taken: %.2f x", float64(said.Total)/(1<<20), peak/(1<<20), ratio)
			if ratio < tt.less || ratio > tt.more {
				t.Errorf("the ratio is %.2f, want %g to %g", ratio, tt.less, tt.more)
			}
		})
	}
}

// TestForecastCollectives: a step reduces all parameters once, with the averages of batch
// normalization, in buckets of 12 MiB; on one GPU it reduces nothing. Each batch normalization has
// three all-reduces more. Most of the backward pass runs during the buckets if there are several.
func TestForecastCollectives(t *testing.T) {
	type forecasts struct {
		model       string
		nodes, gpus int
		want        int
		norms       int64 // Three averages and four means for each of ResNet-18's 4,800 channels.
	}
	for _, tt := range tier.Fewer([]forecasts{
		{"cnn", 1, 1, 0, 0}, {"cnn", 2, 8, 1, 0},
		{"resnet18", 2, 8, 5 + 3*20, 4 * 7 * 4800}, {"cnn", 1, 8, 1, 0}, {"resnet18", 1, 1, 0, 0}, {"resnet18", 1, 8, 5 + 3*20, 4 * 7 * 4800},
	}, 2) {
		t.Run(fmt.Sprintf("%s, %d GPUs", tt.model, tt.nodes*tt.gpus), func(t *testing.T) {
			dump := t.TempDir()
			got := ask(t, tt.model, h100s(tt.nodes, tt.gpus), "XLA_FLAGS=--xla_dump_hlo_as_text --xla_dump_to="+dump)
			t.Logf("%+v", got)
			if len(got.Collectives) != tt.want || tt.want > 0 && !strings.HasPrefix(got.Collectives[0], "all-reduce") {
				t.Errorf("the collectives %q, want %d", got.Collectives, tt.want)
			}
			want := got.Memory.Parameters + tt.norms
			if tt.want == 0 {
				want = 0
			}
			if got.Reduced != want {
				t.Errorf("reduces %d bytes, want %d", got.Reduced, want)
			}
			if tt.want < 2 {
				return
			}
			if beside, all := backwardBeside(t, dump); beside*2 < all {
				t.Errorf("%d of the %d convolutions of the backward pass run during an all-reduce, want half", beside, all)
			} else {
				t.Logf("%d of the %d convolutions of the backward pass run during an all-reduce", beside, all)
			}
		})
	}
}

// instruction matches those of a scheduled program that begin and end an all-reduce, and the
// convolutions of the backward pass, by XLA's names.
var instruction = regexp.MustCompile(`^ +(?:ROOT )?%(?:(all-reduce-start)|(all-reduce-done)|(cudnn-conv-bw-))`)

// backwardBeside counts the convolutions of the backward pass in the schedule that XLA has left in
// a folder, and those of them that run while an all-reduce does.
func backwardBeside(t *testing.T, folder string) (beside, all int) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*gpu_after_optimizations.txt"))
	if err != nil || len(files) != 1 {
		t.Fatalf("scheduled programs: %q, %v", files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	_, entry, _ := strings.Cut(string(text), "\nENTRY ")
	running := 0
	for line := range strings.Lines(entry) {
		switch m := instruction.FindStringSubmatch(line); {
		case m == nil:
		case m[1] != "":
			running++
		case m[2] != "":
			running--
		default:
			all++
			beside += running
		}
	}
	return beside, all
}

// TestForecastOfGPUs: the layers of models/cnn are forecast as they are on GPUs, not as on the CPU
// of this process.
func TestForecastOfGPUs(t *testing.T) {
	got, want := ask(t, "ours", h100s(1, 2)), ask(t, "gomlx", h100s(1, 2))
	if got.FLOPs != want.FLOPs || got.Memory.Total != want.Memory.Total || got.BytesMoved != want.BytesMoved {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestForecastBatch: a step that needs too much memory is forecast as well, and so is another batch
// size than the program's.
func TestForecastBatch(t *testing.T) {
	gpu, err := forecast.Find("t4")
	if err != nil {
		t.Fatal(err)
	}
	one := forecast.World{Target: "t4", Nodes: 1, GPUsPerNode: 1}
	large := ask(t, "wide", forecast.Question{World: one})
	small := ask(t, "wide", forecast.Question{World: one, Batch: 1 << 13})
	if large.Batch != 1<<14 || small.Batch != 1<<13 {
		t.Errorf("batches of %d and %d", large.Batch, small.Batch)
	}
	if large.Memory.Fits(gpu) || !small.Memory.Fits(gpu) {
		t.Errorf("%d bytes fit: %v; %d bytes fit: %v", large.Memory.Total, large.Memory.Fits(gpu), small.Memory.Total, small.Memory.Fits(gpu))
	}
	if ratio := float64(large.Memory.Activations) / float64(small.Memory.Activations); ratio < 1.8 || ratio > 2.2 {
		t.Errorf("twice the batch takes %.2f times the activations", ratio)
	}
}
