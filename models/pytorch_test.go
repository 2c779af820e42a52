package models_test

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"gonbatch/internal/layerhooks"
	"gonbatch/internal/tier"
	"gonbatch/models"
	"gonbatch/models/modelstest"
)

// TestAgainstPyTorch compares results and the gradients of all weights with those of PyTorch 2.15,
// from the same weights and in double precision. testdata/pytorch.py wrote what PyTorch computed.
func TestAgainstPyTorch(t *testing.T) {
	file, err := os.ReadFile("testdata/pytorch.json")
	if err != nil {
		t.Fatal(err)
	}
	var outcomes map[string]map[string][]float64
	if err := json.Unmarshal(file, &outcomes); err != nil {
		t.Fatal(err)
	}
	dcgan := func(size, channels, width int) models.DCGANConfig {
		return models.DCGANConfig{ImageSize: size, Channels: channels, NoiseSize: 7, Width: width}
	}
	cases := []twin{
		{"linear", models.Linear(3), []int{4, 5}, renaming(`^linear/dense/weights`, `weight`, `^linear/dense/biases`, `bias`)},
		{"mlp", models.MLP(3, 8, 7), []int{4, 6}, sequential},
		{"mnist", models.MNIST, []int{3, 28, 28, 1}, renaming(slices.Concat([]string{`/(conv|dense)/`, `/`}, ends)...)},
		{"gpt", gptOfNumbers, []int{2, 20}, gptInTorch},
		{"vit", models.ViT(tinyViT), []int{3, 12, 12, 3}, timm},
		{"generator of 64 pixels", models.DCGANGenerator(dcgan(64, 3, 2)), []int{3, 7}, generatorInPyTorch(4)},
		{"discriminator of 64 pixels", models.DCGANDiscriminator(dcgan(64, 3, 2)), []int{3, 64, 64, 3}, discriminatorInPyTorch(4)},
		{"generator of 32 pixels", models.DCGANGenerator(dcgan(32, 1, 3)), []int{3, 7}, generatorInPyTorch(3)},
		{"discriminator of 32 pixels", models.DCGANDiscriminator(dcgan(32, 1, 3)), []int{3, 32, 32, 1}, discriminatorInPyTorch(3)},
		{"resnet18", models.ResNet18(10), []int{2, 16, 8, 3}, torchvision},
		{"resnet50", models.ResNet50(10), []int{2, 64, 32, 3}, torchvision},
		{"unet", models.UNet(models.UNetConfig{Classes: 5, Depth: 2, Width: 4}), []int{2, 8, 16, 3}, milesial(2, true)},
		{"unet without norm", models.UNet(models.UNetConfig{Classes: 2, Depth: 3, Width: 3, NoNorm: true}), []int{2, 16, 8, 1}, milesial(3, false)},
	}
	if len(cases) != len(outcomes) {
		t.Errorf("%d networks, but %d in the file", len(cases), len(outcomes))
	}
	for _, c := range tier.Fewer(cases, len(cases)-6) { // The last ones take longest, or are like others.
		t.Run(c.name, func(t *testing.T) { c.compare(t, outcomes[c.name]) })
	}
}

// twin is a network that PyTorch has too.
type twin struct {
	name    string
	network func(*model.Scope, *graph.Node) *graph.Node
	size    []int               // The shape of x.
	inTorch func(string) string // Returns the name in PyTorch of a variable.
}

func (c twin) compare(t *testing.T, want map[string][]float64) {
	store := model.NewStore()
	x := likeTorch("x", c.size).tensor(noise("x", product(c.size)))
	predict := model.MustNewExec(modelstest.Backend(t), store, c.network)
	if _, err := predict.Call1(x); err != nil { // It creates the variables.
		t.Fatal(err)
	}
	c.setWeights(t, store)
	y, err := predict.Call1(x)
	if err != nil {
		t.Fatal(err)
	}
	likeTorch("y", y.Shape().Dimensions).check(t, "predicted", y, want)
	names := []string{"trained", "x"}
	exec := model.MustNewExec(modelstest.Backend(t), store, func(scope *model.Scope, in []*graph.Node) []*graph.Node {
		store.SetTraining(in[0].Graph(), true)
		y, inputs := c.network(scope, in[0]), []*graph.Node{in[0]}
		for v := range store.IterVariables() {
			if v.Trainable {
				inputs, names = append(inputs, v.NodeValue(y.Graph())), append(names, v.Path())
			}
		}
		return append([]*graph.Node{y}, graph.Gradient(graph.ReduceAllSum(graph.Mul(y, in[1])), inputs...)...)
	})
	out, err := exec.Exec(x, likeTorch("y", y.Shape().Dimensions).tensor(noise("loss", y.Shape().Size())))
	if err != nil {
		t.Fatal(err)
	}
	if len(names) != len(want)-1 {
		t.Errorf("%d tensors, PyTorch has %d", len(names), len(want)-1)
	}
	for i, name := range names {
		inTorch := name
		if i > 1 {
			inTorch = c.inTorch(name)
		}
		likeTorch(name, out[i].Shape().Dimensions).check(t, inTorch, out[i], want)
	}
}

// setWeights gives every variable the values that it has in PyTorch.
func (c twin) setWeights(t *testing.T, store *model.Store) {
	for v := range store.IterVariables() {
		if v.Shape().DType != dtypes.Float64 || strings.HasSuffix(v.Path(), "/avg_weight") {
			continue
		}
		l := likeTorch(v.Path(), v.Shape().Dimensions)
		values := l.weights(c.inTorch(v.Path()))
		if err := v.SetValue(l.tensor(values)); err != nil {
			t.Fatal(err)
		}
	}
}

// weights returns the values of a variable in PyTorch's order, as testdata/weights.py does.
func (l layout) weights(name string) []float64 {
	values := noise(name, product(l.here))
	for i := range values {
		switch {
		case len(l.size()) > 1:
			values[i] *= math.Sqrt(3 * float64(l.size()[0]) / float64(len(values)))
		case strings.HasSuffix(name, "weight"), strings.HasSuffix(name, "running_var"):
			values[i] = values[i]/2 + 1
		default:
			values[i] /= 2
		}
	}
	return values
}

// noise returns numbers from -1 to 1, by MurmurHash3's finalizer, as testdata/weights.py does.
func noise(name string, n int) []float64 {
	values, seed := make([]float64, n), crc32.ChecksumIEEE([]byte(name))*0x9E3779B9
	for i := range values {
		h := uint32(i) + seed
		h = (h ^ h>>16) * 0x85EBCA6B
		h = (h ^ h>>13) * 0xC2B2AE35
		h ^= h >> 16
		values[i] = (float64(h)+0.5)/(1<<31) - 1
	}
	return values
}

// layout is the order of the numbers of a tensor here and in PyTorch.
type layout struct {
	here  []int // The size of each axis here.
	order []int // For each axis in PyTorch, the axis here.
	one   bool  // Whether PyTorch has a further axis of size 1 in front.
}

// likeTorch returns the layout of a variable, of images, or of other rows.
func likeTorch(name string, size []int) layout {
	l := layout{here: size, order: []int{0, 1, 2, 3}[:len(size)]}
	switch {
	case strings.HasSuffix(name, "/transposed_conv/weights"):
		l.order = []int{2, 3, 0, 1}
	case strings.HasSuffix(name, "/conv/weights"):
		l.order = []int{3, 2, 0, 1}
	case strings.HasSuffix(name, "/weights"):
		l.order = []int{1, 0}
	case name == "/class", name == "/positions":
		l.one = true
	case len(size) == 4:
		l.order = []int{0, 3, 1, 2}
	}
	return l
}

// size returns the size of each axis in PyTorch.
func (l layout) size() (inTorch []int) {
	if l.one {
		inTorch = []int{1}
	}
	for _, axis := range l.order {
		inTorch = append(inTorch, l.here[axis])
	}
	return inTorch
}

// places returns the place here of each number in PyTorch's order.
func (l layout) places() []int {
	all := []int{0}
	for _, axis := range l.order {
		step := product(l.here[axis+1:])
		var longer []int
		for _, place := range all {
			for i := range l.here[axis] {
				longer = append(longer, place+i*step)
			}
		}
		all = longer
	}
	return all
}

// tensor returns a tensor of numbers in PyTorch's order.
func (l layout) tensor(values []float64) *tensors.Tensor {
	here := make([]float64, len(values))
	for i, place := range l.places() {
		here[place] = values[i]
	}
	return tensors.FromFlatDataAndDimensions(here, l.here...)
}

// check compares a tensor with the norm, the product with noise and the 8 numbers of PyTorch's.
func (l layout) check(t *testing.T, name string, x *tensors.Tensor, want map[string][]float64) {
	t.Helper()
	here, values := tensors.MustCopyFlatData[float64](x), make([]float64, x.Shape().Size())
	for i, place := range l.places() {
		values[i] = here[place]
	}
	norm, sum := 0.0, 0.0
	for i, other := range noise(name+" digest", len(values)) {
		norm += values[i] * values[i]
		sum += values[i] * other
	}
	got := []float64{math.Sqrt(norm), sum}
	for i := range 8 {
		got = append(got, values[i*(len(values)-1)/7])
	}
	if len(want[name]) != len(got) {
		t.Fatalf("PyTorch has no %s", name)
	}
	for i, value := range want[name] {
		if !(math.Abs(got[i]-value) < 1e-9*max(1, want[name][0])) {
			t.Errorf("%s: got %.9g, PyTorch has %.9g", name, got, want[name])
			return
		}
	}
}

func product(sizes []int) int {
	n := 1
	for _, size := range sizes {
		n *= size
	}
	return n
}

// renaming returns a function that replaces what the patterns find, one after the other.
func renaming(patterns ...string) func(string) string {
	return func(path string) string {
		path = strings.TrimPrefix(path, "/")
		for pair := range slices.Chunk(patterns, 2) {
			path = regexp.MustCompile(pair[0]).ReplaceAllString(path, pair[1])
		}
		return path
	}
}

// timm names the variables of ViTs, as the comment on ViT does.
var timm = renaming(
	`^class$`, `cls_token`, `^positions$`, `pos_embed`,
	`^patches/conv`, `patch_embed.proj`, `^logits`, `head`, `^last/layer_normalization`, `norm`,
	`^layer_`, `blocks.`, `/attention/layer_normalization`, `.norm1`, `/mlp/layer_normalization`, `.norm2`,
	`/attention/qkv`, `.attn.qkv`, `/attention/projection`, `.attn.proj`, `/mlp/hidden`, `.mlp.fc1`, `/mlp/projection`, `.mlp.fc2`,
	`/(weights|gain)$`, `.weight`, `/(biases|offset)$`, `.bias`,
)

// ends are the last patterns of convolutions and batch normalizations.
var ends = []string{`/weights$`, `.weight`, `/biases$`, `.bias`, `/scale$`, `.weight`, `/offset$`, `.bias`, `/mean$`, `.running_mean`, `/variance$`, `.running_var`}

// sequential names the variables of MLPs with up to three layers.
var sequential = renaming(slices.Concat([]string{`^layer_2/dense`, `4`, `^layer_1/dense`, `2`, `^layer_0/dense`, `0`}, ends)...)

// torchvision names the variables of ResNet18 and ResNet50.
var torchvision = renaming(slices.Concat([]string{
	`^first/conv`, `conv1`, `^first/batch_normalization`, `bn1`, `^logits/dense`, `fc`, `^stage_`, `layer`,
	`/shortcut/conv`, `.downsample.0`, `/shortcut/batch_normalization`, `.downsample.1`,
	`/conv(\d)/conv`, `.conv$1`, `/conv(\d)/batch_normalization`, `.bn$1`,
	`/block_1`, `.0`, `/block_2`, `.1`, `/block_3`, `.2`, `/block_4`, `.3`, `/block_5`, `.4`, `/block_6`, `.5`,
}, ends)...)

// gptOfNumbers is a GPT whose tokens are made of numbers from -1 to 1, as testdata/pytorch.py does.
func gptOfNumbers(scope *model.Scope, x *graph.Node) *graph.Node {
	const vocabulary = 128
	tokens := graph.ConvertDType(graph.StopGradient(graph.MulScalar(graph.OnePlus(x), vocabulary/2)), dtypes.Int32)
	layerhooks.AttachPrecision(x.Graph(), layerhooks.Precision{Compute: dtypes.Float64, Weights: dtypes.Float64})
	logits := models.GPT(models.GPTConfig{VocabSize: vocabulary, ContextLength: 32, Layers: 2, Heads: 4, Width: 64})(scope, tokens)
	return graph.Add(logits, graph.MulScalar(graph.ReduceAllSum(x), 0))
}

// milesial names the variables of U-Nets.
func milesial(depth int, normalized bool) func(string) string {
	second := "2"
	if normalized {
		second = "3"
	}
	patterns := []string{
		`/conv1/conv`, `/double_conv.0`, `/conv2/conv`, `/double_conv.` + second,
		`/conv1/batch_normalization`, `/double_conv.1`, `/conv2/batch_normalization`, `/double_conv.4`,
		`^down_0/`, `inc.`, `^down_(\d)/`, `down$1.maxpool_conv.1.`, `^logits/conv`, `outc.conv`,
	}
	for i := range depth {
		up := fmt.Sprint(depth - i)
		patterns = append(patterns, fmt.Sprintf(`^up_%d/transposed_conv`, i), `up`+up+`.up`, fmt.Sprintf(`^up_%d/`, i), `up`+up+`.conv.`)
	}
	return renaming(slices.Concat(patterns, ends)...)
}

// generatorInPyTorch names the variables of a DCGAN's generator.
func generatorInPyTorch(layers int) func(string) string {
	patterns := []string{`^image/transposed_conv`, fmt.Sprintf("main.%d", 3*layers)}
	for i := range layers {
		patterns = append(patterns, fmt.Sprintf("^layer_%d/transposed_conv", i), fmt.Sprintf("main.%d", 3*i), fmt.Sprintf("^layer_%d/batch_normalization", i), fmt.Sprintf("main.%d", 3*i+1))
	}
	return renaming(slices.Concat(patterns, ends)...)
}

// discriminatorInPyTorch names the variables of a DCGAN's discriminator.
func discriminatorInPyTorch(layers int) func(string) string {
	patterns := []string{`^layer_0/conv`, `main.0`, `^logits/conv`, fmt.Sprintf("main.%d", 3*layers-1)}
	for i := range layers {
		patterns = append(patterns, fmt.Sprintf("^layer_%d/conv", i), fmt.Sprintf("main.%d", 3*i-1), fmt.Sprintf("^layer_%d/batch_normalization", i), fmt.Sprintf("main.%d", 3*i))
	}
	return renaming(slices.Concat(patterns, ends)...)
}
