package trainer_test

import (
	"errors"
	"maps"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/layers/activation"
	"github.com/gomlx/gomlx/ml/layers/norm"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train/loss"

	"gonbatch/checkpoint"
	"gonbatch/data"
	"gonbatch/models/cnn"
	"gonbatch/trainer"
)

// torchFile was written by PyTorch, with testdata/writeweights.py. It has the weights of torchNet,
// and an example of its inputs and outputs.
const torchFile = "testdata/torch.safetensors"

// torchNet is the network of testdata/writeweights.py, for images [batch, 6, 5, 2].
func torchNet(scope *model.Scope, x *graph.Node) *graph.Node {
	x = cnn.Convolution(scope.In("conv"), x).Channels(3).KernelSizePerAxis(3, 5).PadSame().Done()
	x = activation.Relu(cnn.BatchNorm(scope.In("norm"), x).Epsilon(1e-5).Momentum(0.9).Done())
	x = layers.Dense(scope.In("hidden"), graph.Reshape(x, x.Shape().Dimensions[0], -1), true, 7)
	x = norm.LayerNorm(scope.In("scaled"), x, -1).Epsilon(1e-5).Done()
	return layers.Dense(scope.In("logits"), x, false, 4)
}

func torchTask() trainer.Task {
	return trainer.Supervised(torchNet, loss.SparseCategoricalCrossEntropyLogits, trainer.SGD{LearningRate: 0.1})
}

// torchLayers are the layers of the file, but for fc1, which InitFromTorch can't convert.
func torchLayers() map[string]string {
	return map[string]string{"conv1": "/conv", "bn1": "/norm", "norm": "/scaled", "fc2": "/logits", "fc1": "", "example": ""}
}

// torchNames are the tensors of the file by name.
func torchNames() map[string]trainer.Target {
	return map[string]trainer.Target{
		"conv1.weight": {Variable: "/conv/conv/weights", Layout: trainer.TorchConv},
		"conv1.bias":   {Variable: "/conv/conv/biases"},
		"fc1.weight":   {Variable: "/hidden/dense/weights", Layout: trainer.TorchFlattened(3, 6, 5)},
		"fc1.bias":     {Variable: "/hidden/dense/biases"},
		"norm.weight":  {Variable: "/scaled/layer_normalization/gain"},
		"norm.bias":    {Variable: "/scaled/layer_normalization/offset"},
		"fc2.weight":   {Variable: "/logits/dense/weights", Layout: trainer.TorchLinear},
		"":             {},
	}
}

// torchExample returns the images of torchFile, each with an arbitrary label, and PyTorch's
// outputs.
func torchExample(t *testing.T) (images data.Dataset, outputs []float32) {
	t.Helper()
	return exampleOf(t, torchFile)
}

// exampleOf returns the images of a file, each with an arbitrary label, and PyTorch's outputs.
func exampleOf(t *testing.T, path string) (images data.Dataset, outputs []float32) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	info, statErr := f.Stat()
	if statErr != nil {
		t.Fatal(statErr)
	}
	all, _, err := checkpoint.ReadTensors(f, info.Size())
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	labels := tensors.FromFlatDataAndDimensions([]int32{0, 1, 2, 3, 2, 1}, 6, 1)
	images, err = data.Tensors("images", []*tensors.Tensor{all["/example.inputs"]}, []*tensors.Tensor{labels})
	if err != nil {
		t.Fatal(err)
	}
	return images, tensors.MustCopyFlatData[float32](all["/example.outputs"])
}

// checkOutputs checks that rank 0 gets PyTorch's outputs, and no other rank gets any.
func checkOutputs(t *testing.T, tr *trainer.Trainer, images data.Dataset, want []float32) {
	t.Helper()
	var got []float32
	err := tr.PredictOnMain(t.Context(), images, func(_ []int, predictions []*tensors.Tensor) error {
		got = append(got, tensors.MustCopyFlatData[float32](predictions[0])...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if !tr.World().IsMain() {
		want = nil
	}
	if len(got) != len(want) {
		t.Fatalf("%d outputs, want %d", len(got), len(want))
	}
	for i := range got {
		if diff := math.Abs(float64(got[i] - want[i])); !(diff < 1e-5) {
			t.Errorf("output %d is %g, PyTorch's is %g", i, got[i], want[i])
		}
	}
}

// TestInitFromTorch: with PyTorch's weights, the model has PyTorch's outputs. All ranks get them,
// and train on.
func TestInitFromTorch(t *testing.T) { everywhere(t, testInitFromTorch) }

func testInitFromTorch(t *testing.T) {
	images, want := torchExample(t)
	flattened := maps.Clone(torchNames())
	maps.DeleteFunc(flattened, func(name string, _ trainer.Target) bool { return name != "" && !strings.HasPrefix(name, "fc1") })
	options := []trainer.Option{
		trainer.InitFromTorch(torchFile, torchLayers(), "/conv", "/norm", "/scaled", "/logits"),
		trainer.InitFromNames(torchFile, flattened, "/hidden"),
	}
	tr, _ := newTrainer(t, trainer.Config{BatchSize: 6}, torchTask(), options...)
	checkOutputs(t, tr, images, want)
	tr, _ = newTrainer(t, trainer.Config{BatchSize: 6}, torchTask(), options...)
	if err := tr.Fit(t.Context(), images, nil); err != nil {
		t.Fatal(err)
	}
	// PyTorch has counted 3 batches, and Fit one more.
	if counts := tensors.MustCopyFlatData[float32](tr.Store().GetVariable("/norm/batch_normalization/avg_weight").MustValue()); len(counts) != 3 || counts[0] != 4 {
		t.Errorf("the counts of the batch normalization are %v, want 4", counts)
	}
}

// transposedFile was written by PyTorch, with testdata/writetransposed.py.
const transposedFile = "testdata/transposed.safetensors"

// transposedNet is the network of testdata/writetransposed.py, for images [batch, 4, 3, 2].
func transposedNet(scope *model.Scope, x *graph.Node) *graph.Node {
	x = cnn.TransposedConvolution(scope.In("up"), x).Channels(5).KernelSize(4).Strides(2).Padding(1).Done()
	x = activation.Relu(cnn.BatchNorm(scope.In("norm"), x).Epsilon(1e-5).Momentum(0.9).Done())
	x = cnn.Convolution(scope.In("mix"), x).Channels(4).KernelSize(3).PadSame().Done()
	return cnn.TransposedConvolution(scope.In("image"), x).Channels(3).KernelSize(3).UseBias(false).Done()
}

// TestInitFromTorchTransposed: with PyTorch's weights, transposed convolutions have PyTorch's
// outputs.
func TestInitFromTorchTransposed(t *testing.T) {
	images, want := exampleOf(t, transposedFile)
	task := trainer.Supervised(transposedNet, loss.MeanSquaredError, trainer.SGD{LearningRate: 0.1})
	layers := map[string]string{"up": "/up/transposed_conv", "bn": "/norm", "mix": "/mix", "image": "/image/transposed_conv", "": ""}
	tr, _ := newTrainer(t, trainer.Config{BatchSize: 6}, task, trainer.InitFromTorch(transposedFile, layers))
	checkOutputs(t, tr, images, want)
}

// TestInitFromTorchLayer: a file of a single layer has names without dots.
func TestInitFromTorchLayer(t *testing.T) {
	path, weight := tempFile(t, "linear.safetensors"), tensors.FromValue([][]float32{{1, 2, 3}, {4, 5, 6}})
	write, err := checkpoint.TensorFile(map[string]*tensors.Tensor{"/weight": weight, "/bias": tensors.FromValue([]float32{7, 8})}, nil)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(write(f), f.Close()); err != nil {
		t.Fatal(err)
	}
	net := func(scope *model.Scope, x *graph.Node) *graph.Node {
		return layers.Dense(scope.In("logits"), x, true, 2)
	}
	task := trainer.Supervised(net, loss.SparseCategoricalCrossEntropyLogits, trainer.SGD{LearningRate: 0.1})
	ds, err := data.Tensors("rows", []*tensors.Tensor{tensors.FromValue([][]float32{{1, 0, 0}, {0, 0, 1}})}, nil)
	if err != nil {
		t.Fatal(err)
	}
	tr, _ := newTrainer(t, trainer.Config{}, task, trainer.InitFromTorch(path, map[string]string{"": "/logits"}))
	err = tr.PredictOnMain(t.Context(), ds, func(_ []int, predictions []*tensors.Tensor) error {
		if want := tensors.FromValue([][]float32{{8, 12}, {10, 14}}); !predictions[0].Equal(want) {
			t.Errorf("the predictions are %v, want %v", predictions[0], want)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestInitFromNamesRefuses: each error names the tensors, the variables, and their shapes.
func TestInitFromNamesRefuses(t *testing.T) {
	images, _ := torchExample(t)
	names := func(change func(map[string]trainer.Target)) trainer.Option {
		all := torchNames()
		change(all)
		return trainer.InitFromNames(torchFile, all, "/conv", "/hidden", "/logits")
	}
	torch := func(change func(map[string]string)) trainer.Option {
		all := torchLayers()
		change(all)
		return trainer.InitFromTorch(torchFile, all, "/conv", "/norm", "/logits")
	}
	for name, test := range map[string]struct {
		option trainer.Option
		want   []string
	}{
		"unknown name": {
			names(func(all map[string]trainer.Target) { all["fc3.weight"] = trainer.Target{Variable: "/fc3"} }),
			[]string{"testdata/torch.safetensors: the tensors and the names differ", "not in the file:\n    fc3.weight for /fc3"},
		},
		"a tensor without a name": {
			names(func(all map[string]trainer.Target) { delete(all, ""); all["bn1"] = trainer.Target{} }),
			[]string{"without a name:\n    example.inputs, (Float32)[6, 6, 5, 2]\n    example.outputs, (Float32)[6, 4]\n"},
		},
		"twice": {
			names(func(all map[string]trainer.Target) {
				all["conv1.bias"] = trainer.Target{Variable: "/hidden/dense/biases"}
			}),
			[]string{"conv1.bias, (Float32)[3] and fc1.bias, (Float32)[7]: both become /hidden/dense/biases"},
		},
		"not a transposed convolution": {
			torch(func(all map[string]string) { all["fc2"] = "/logits/transposed_conv" }),
			[]string{"fc2.weight, for /logits/transposed_conv/weights: TorchConvTranspose: the weight must have the shape [in, out, height, width], got (Float32)[4, 7]"},
		},
		"no path": {
			names(func(all map[string]trainer.Target) { all["conv1.bias"] = trainer.Target{Variable: "conv"} }),
			[]string{`conv1.bias, (Float32)[3]: the scope "conv": it must be a path`},
		},
		"not a linear": {
			names(func(all map[string]trainer.Target) {
				all["conv1.weight"] = trainer.Target{Variable: "/conv/conv/weights", Layout: trainer.TorchLinear}
			}),
			[]string{"conv1.weight, for /conv/conv/weights: TorchLinear: the weight must have the shape [out, in], got (Float32)[3, 2, 3, 5]"},
		},
		"not converted": {
			names(func(all map[string]trainer.Target) {
				all["fc2.weight"] = trainer.Target{Variable: "/logits/dense/weights"}
			}),
			[]string{"(Float32)[4, 7]", "the first shape is from fc2.weight, (Float32)[4, 7] (InitFromNames testdata/torch.safetensors): a Layout must convert it"},
		},
		"another variable, and one without": {
			names(func(all map[string]trainer.Target) { all["fc1.bias"] = trainer.Target{Variable: "/hidden/dense/bias"} }),
			[]string{
				"fc1.bias, (Float32)[7]: the model has no variable /hidden/dense/bias\n",
				"/hidden/dense/biases, (Float32)[7]: no tensor of the file becomes this variable",
			},
		},
		"no such layer": {
			torch(func(all map[string]string) { all["conv2"] = "/conv_2"; delete(all, "bn1") }),
			[]string{"not in the file:\n    conv2 for /conv_2", "without a name:\n    bn1.bias, (Float32)[3]\n    bn1.num_batches_tracked, (Int64)\n"},
		},
		"no layer": {
			torch(func(all map[string]string) { all["example"] = "/example" }),
			[]string{"example.inputs, (Float32)[6, 6, 5, 2]: it is no parameter", `leave out "example" here`},
		},
		"not a file of tensors": {trainer.InitFromTorch("weights.pth", nil), []string{"weights.pth is not a .safetensors file"}},
	} {
		trainer.NewProcess()
		tr, err := trainer.New(world(t), trainer.Config{BatchSize: 6}, torchTask(), test.option)
		if err == nil {
			err = tr.Fit(t.Context(), images, nil)
		}
		for _, want := range test.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v\nwant %q", name, err, want)
			}
		}
	}
}
