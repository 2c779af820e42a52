package models

import (
	"cmp"
	"fmt"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/layers/activation"
	"github.com/gomlx/gomlx/ml/layers/attention"
	"github.com/gomlx/gomlx/ml/layers/norm"
	"github.com/gomlx/gomlx/ml/model"

	"gonbatch/models/cnn"
)

// ViTConfig is the size of a Vision Transformer. ViTTiny, ViTSmall and ViTBase return the usual
// ones. All numbers but Dropout must be at least 1; a zero in Channels or Hidden means its default.
type ViTConfig struct {
	ImageSize int // Height and width of the images in pixels, a multiple of PatchSize.
	PatchSize int // Height and width of a patch in pixels.
	Channels  int // Channels of the images. The default is 3.
	Classes   int
	Layers    int
	Heads     int // Attention heads in each layer. Width must be a multiple of them.
	Width     int // Length of the vector that stands for a patch.
	Hidden    int // Units in the hidden layer of each perceptron. The default is 4*Width.
	// Dropout is the probability with which a training drops an element: of the embeddings, of the
	// attention weights, and of what each layer adds. It is at least 0 and less than 1.
	Dropout float64
}

// ViTTiny returns the size of ViT-Tiny (Touvron et al., Training data-efficient image transformers,
// 2021, https://arxiv.org/abs/2012.12877) for images of 224x224 pixels in patches of 16x16. For
// 1,000 classes it has 5,717,416 parameters. For CIFAR's images, change its ImageSize to 32 and its
// PatchSize to 4.
func ViTTiny(classes int) ViTConfig {
	return ViTConfig{ImageSize: 224, PatchSize: 16, Classes: classes, Layers: 12, Heads: 3, Width: 192}
}

// ViTSmall is like ViTTiny, but twice as wide. For 1,000 classes it has 22,050,664 parameters.
func ViTSmall(classes int) ViTConfig {
	c := ViTTiny(classes)
	c.Heads, c.Width = 6, 384
	return c
}

// ViTBase returns the size of ViT-Base, the smallest of the paper. For 1,000 classes it has
// 86,567,656 parameters.
func ViTBase(classes int) ViTConfig {
	c := ViTTiny(classes)
	c.Heads, c.Width = 12, 768
	return c
}

// withDefaults replaces zeros that mean a default.
func (c ViTConfig) withDefaults() ViTConfig {
	c.Channels, c.Hidden = cmp.Or(c.Channels, 3), cmp.Or(c.Hidden, 4*c.Width)
	return c
}

// Validate returns an error that names a value which no ViT can have.
func (c ViTConfig) Validate() error {
	c = c.withDefaults()
	for _, size := range []struct {
		name  string
		value int
	}{
		{"ImageSize", c.ImageSize}, {"PatchSize", c.PatchSize}, {"Channels", c.Channels}, {"Classes", c.Classes},
		{"Layers", c.Layers}, {"Heads", c.Heads}, {"Width", c.Width}, {"Hidden", c.Hidden},
	} {
		if size.value < 1 {
			return fmt.Errorf("models.ViTConfig: %s must be at least 1, got %d", size.name, size.value)
		}
	}
	if c.ImageSize%c.PatchSize != 0 {
		return fmt.Errorf("models.ViTConfig: ImageSize must be a multiple of PatchSize = %d, got %d", c.PatchSize, c.ImageSize)
	}
	if c.Width%c.Heads != 0 {
		return fmt.Errorf("models.ViTConfig: Width must be a multiple of Heads = %d, got %d", c.Heads, c.Width)
	}
	if !(c.Dropout >= 0 && c.Dropout < 1) {
		return fmt.Errorf("models.ViTConfig: Dropout must be at least 0 and less than 1, got %g", c.Dropout)
	}
	return nil
}

// patches returns the number of patches of an image.
func (c ViTConfig) patches() int { return (c.ImageSize / c.PatchSize) * (c.ImageSize / c.PatchSize) }

// Parameters returns the number of parameters. With a width of W, H hidden units, L layers, N
// patches of P numbers each, and C classes, it is (P+1)*W + (N+2)*W + L*(4*W^2 + 2*W*H + 9*W + H) +
// 2*W + (W+1)*C.
func (c ViTConfig) Parameters() int {
	c = c.withDefaults()
	w, h, patch := c.Width, c.Hidden, c.PatchSize*c.PatchSize*c.Channels
	return (patch+1)*w + (c.patches()+2)*w + c.Layers*(4*w*w+2*w*h+9*w+h) + 2*w + (w+1)*c.Classes
}

// ViT returns a Vision Transformer: a network that classifies images by a transformer whose tokens
// are patches of the image and one for the class (Dosovitskiy et al., An Image is Worth 16x16
// Words, 2020, https://arxiv.org/abs/2010.11929). Positions are learned, layers are normalized
// before they compute, and the perceptrons use GELU.
//
// The network's x is [batch, ImageSize, ImageSize, Channels]. Its result is logits, [batch,
// Classes].
//
// These are the variables, and the tensors of timm's ViTs, such as vit_tiny_patch16_224, with the
// same values. The weights of a dense layer are [in, out] here and [out, in] there, the kernel of
// the patches is [height, width, in, out] here and [out, in, height, width] there, and positions
// and the class's token have a further axis of size 1 in front there.
//
//	patches/conv/weights, biases                  patch_embed.proj.weight, bias
//	class                                         cls_token (the same token for each image, [1, Width])
//	positions                                     pos_embed (that of the class's token comes first)
//	layer_0/attention/layer_normalization/...     blocks.0.norm1....
//	layer_0/attention/qkv/weights, biases         blocks.0.attn.qkv.weight, bias
//	layer_0/attention/projection/weights, biases  blocks.0.attn.proj.weight, bias
//	layer_0/mlp/layer_normalization/...           blocks.0.norm2....
//	layer_0/mlp/hidden/weights, biases            blocks.0.mlp.fc1.weight, bias
//	layer_0/mlp/projection/weights, biases        blocks.0.mlp.fc2.weight, bias
//	last/layer_normalization/...                  norm....
//	logits/weights, biases                        head.weight, bias
//
// The parts of a normalization are gain and offset here, and weight and bias there.
func ViT(c ViTConfig) func(scope *model.Scope, x *graph.Node) *graph.Node {
	return func(scope *model.Scope, x *graph.Node) *graph.Node {
		c := c.checked(x)
		scope = scope.WithInitializer(normal(scope, initialDeviation))
		x = layers.DropoutStatic(scope, c.embeddings(scope, x), c.Dropout)
		for i := range c.Layers {
			layer := scope.In("layer_%d", i)
			x = graph.Add(x, c.attention(layer.In("attention"), x))
			x = graph.Add(x, c.perceptron(layer.In("mlp"), x))
		}
		class := graph.Squeeze(graph.Slice(x, graph.AxisRange(), graph.AxisElem(0)), 1)
		return dense(scope.In("logits"), c.normalized(scope.In("last"), class), c.Classes, initialDeviation)
	}
}

// checked returns the configuration with its defaults, or panics if it or x is wrong.
func (c ViTConfig) checked(x *graph.Node) ViTConfig {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	c = c.withDefaults()
	if d := x.Shape().Dimensions; x.Rank() != 4 || d[1] != c.ImageSize || d[2] != c.ImageSize || d[3] != c.Channels {
		panic(fmt.Errorf("models.ViT: x has shape %s; it must be [batch, %d, %d, %d]", x.Shape(), c.ImageSize, c.ImageSize, c.Channels))
	}
	return c
}

// embeddings returns the tokens of images, [batch, 1+patches, Width]: the class's, and one for each
// patch, row by row.
func (c ViTConfig) embeddings(scope *model.Scope, x *graph.Node) *graph.Node {
	variable := func(name string, size ...int) *graph.Node {
		return scope.VariableWithShape(name, shapes.Make(x.DType(), size...)).NodeValue(x.Graph())
	}
	batch := x.Shape().Dimensions[0]
	patches := cnn.Convolution(scope.In("patches"), x).Channels(c.Width).KernelSize(c.PatchSize).Strides(c.PatchSize).Done()
	patches = graph.Reshape(patches, batch, c.patches(), c.Width)
	class := graph.BroadcastToDims(graph.Reshape(variable("class", 1, c.Width), 1, 1, c.Width), batch, 1, c.Width)
	positions := variable("positions", 1+c.patches(), c.Width)
	return graph.Add(graph.Concatenate([]*graph.Node{class, patches}, 1), graph.InsertAxes(positions, 0))
}

// attention is what the attention of a layer adds to x, [batch, n, Width]: each head adds up values
// of all tokens, weighted by how well their keys match its query.
func (c ViTConfig) attention(scope *model.Scope, x *graph.Node) *graph.Node {
	batch, n, size := x.Shape().Dimensions[0], x.Shape().Dimensions[1], c.Width/c.Heads
	all := dense(scope.In("qkv"), c.normalized(scope, x), 3*c.Width, initialDeviation)
	all = graph.TransposeAllAxes(graph.Reshape(all, batch, n, 3, c.Heads, size), 2, 0, 3, 1, 4)
	part := func(i int) *graph.Node { return graph.Squeeze(graph.Slice(all, graph.AxisElem(i)), 0) } // [batch, heads, n, size]
	options := attention.CoreOptions{}
	if c.Dropout > 0 {
		options.Scope, options.DropoutRate = scope, graph.Scalar(x.Graph(), dtypes.Float32, c.Dropout)
	}
	y, _ := attention.Core(part(0), part(1), part(2), attention.LayoutBHSD, options)
	y = graph.Reshape(graph.TransposeAllAxes(y, 0, 2, 1, 3), batch, n, c.Width)
	return layers.DropoutStatic(scope, dense(scope.In("projection"), y, c.Width, initialDeviation), c.Dropout)
}

// perceptron is what the two dense layers of a layer add to x.
func (c ViTConfig) perceptron(scope *model.Scope, x *graph.Node) *graph.Node {
	hidden := activation.Gelu(dense(scope.In("hidden"), c.normalized(scope, x), c.Hidden, initialDeviation))
	return layers.DropoutStatic(scope, dense(scope.In("projection"), hidden, c.Width, initialDeviation), c.Dropout)
}

func (c ViTConfig) normalized(scope *model.Scope, x *graph.Node) *graph.Node {
	return norm.LayerNorm(scope, x, -1).Epsilon(1e-6).Done()
}
