package models

import (
	"cmp"
	"fmt"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers/activation"
	"github.com/gomlx/gomlx/ml/model"

	"gonbatch/models/cnn"
)

// DCGANConfig is the size of the two networks of a DCGAN. A zero means the default.
type DCGANConfig struct {
	ImageSize int // Height and width of the images in pixels: 32 or 64, the default.
	Channels  int // Channels of the images. The default is 3.
	NoiseSize int // Length of the vector that the generator makes an image of. The default is 100.
	Width     int // Channels at half the images' size; each halving doubles them. The default is 64.
}

// Validate returns an error that names a value which no DCGAN can have.
func (c DCGANConfig) Validate() error {
	if c.ImageSize != 0 && c.ImageSize != 32 && c.ImageSize != 64 {
		return fmt.Errorf("models.DCGANConfig: ImageSize must be 32 or 64, or 0 for 64, got %d", c.ImageSize)
	}
	for _, size := range []struct {
		name           string
		value, instead int
	}{{"Channels", c.Channels, 3}, {"NoiseSize", c.NoiseSize, 100}, {"Width", c.Width, 64}} {
		if size.value < 0 {
			return fmt.Errorf("models.DCGANConfig: %s must be at least 1, or 0 for %d, got %d", size.name, size.instead, size.value)
		}
	}
	return nil
}

// checked returns the configuration with its defaults, or panics if it is wrong.
func (c DCGANConfig) checked() DCGANConfig {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	c.ImageSize, c.Channels = cmp.Or(c.ImageSize, 64), cmp.Or(c.Channels, 3)
	c.NoiseSize, c.Width = cmp.Or(c.NoiseSize, 100), cmp.Or(c.Width, 64)
	return c
}

// halvings returns how often the images must be halved for 4x4 pixels.
func (c DCGANConfig) halvings() int {
	if c.ImageSize == 32 {
		return 3
	}
	return 4
}

// DCGANGenerator returns the generator of a DCGAN: a network that makes images of noise by
// transposed convolutions with batch normalization and ReLU, and tanh at the end (Radford et al.,
// Unsupervised Representation Learning with Deep Convolutional Generative Adversarial Networks,
// 2015, https://arxiv.org/abs/1511.06434). Its kernels have 4x4 pixels, as in PyTorch's example.
// With the defaults it has 3,576,704 parameters. Their initial values have the paper's standard
// deviation of 0.02.
//
// The network's z is [batch, NoiseSize], normally distributed. Its result is images, [batch,
// ImageSize, ImageSize, Channels], from -1 to 1. Scale the real images alike.
//
// These are the variables, and the tensors of PyTorch's example
// (https://github.com/pytorch/examples/tree/main/dcgan) with the same values. A kernel is [height,
// width, in, out] here and [in, out, height, width] there.
//
//	layer_0/transposed_conv/weights   main.0.weight
//	layer_0/batch_normalization/...   main.1....
//	layer_1/...                       main.3.weight, main.4....
//	image/transposed_conv/weights     main.12.weight, or main.9.weight for 32 pixels
//
// The parts of a batch normalization are scale, offset, mean and variance here, and weight, bias,
// running_mean and running_var there.
func DCGANGenerator(c DCGANConfig) func(scope *model.Scope, z *graph.Node) *graph.Node {
	return func(scope *model.Scope, z *graph.Node) *graph.Node {
		c := c.checked()
		if z.Rank() != 2 || z.Shape().Dimensions[1] != c.NoiseSize {
			panic(fmt.Errorf("models.DCGANGenerator: z has shape %s; it must be [batch, %d]", z.Shape(), c.NoiseSize))
		}
		scope = scope.WithInitializer(normal(scope, initialDeviation))
		x := graph.Reshape(z, -1, 1, 1, c.NoiseSize)
		for i := range c.halvings() {
			layer, channels := scope.In("layer_%d", i), c.Width<<(c.halvings()-1-i)
			x = enlarged(layer, x, channels, i > 0)
			x = activation.Relu(cnn.BatchNorm(layer, x).Done())
		}
		return graph.Tanh(enlarged(scope.In("image"), x, c.Channels, true))
	}
}

// enlarged doubles the size of images, or makes images of 4x4 pixels of single pixels.
func enlarged(scope *model.Scope, x *graph.Node, channels int, double bool) *graph.Node {
	b := cnn.TransposedConvolution(scope, x).Channels(channels).KernelSize(4).UseBias(false)
	if double {
		b.Strides(2).Padding(1)
	} else {
		b.Strides(4)
	}
	return b.Done()
}

// DCGANDiscriminator returns the discriminator of a DCGAN: a network that distinguishes real images
// from the generator's, by 4x4 convolutions with a stride of 2, leaky ReLU, and batch normalization
// in all layers but the first and last. See DCGANGenerator. With the defaults it has 2,765,568
// parameters.
//
// The network's x is [batch, ImageSize, ImageSize, Channels], from -1 to 1. Its result is logits,
// [batch, 1]: positive if it takes an image for a real one. PyTorch's example applies a sigmoid to
// them. Call it once with the real images and once, with scope.ResetVisited(), with the
// generator's, as notebooks/gan.ipynb does: each batch has its own normalization.
//
// The variables are layer_0/conv/weights, layer_1/conv/weights, layer_1/batch_normalization/...,
// ..., logits/conv/weights. In PyTorch's example these are main.0.weight, main.2.weight,
// main.3...., main.5.weight, ..., main.11.weight, or main.8.weight for 32 pixels. A kernel is
// [height, width, in, out] here and [out, in, height, width] there.
func DCGANDiscriminator(c DCGANConfig) func(scope *model.Scope, x *graph.Node) *graph.Node {
	return func(scope *model.Scope, x *graph.Node) *graph.Node {
		c := c.checked()
		if d := x.Shape().Dimensions; x.Rank() != 4 || d[1] != c.ImageSize || d[2] != c.ImageSize || d[3] != c.Channels {
			panic(fmt.Errorf("models.DCGANDiscriminator: x has shape %s; it must be [batch, %d, %d, %d]", x.Shape(), c.ImageSize, c.ImageSize, c.Channels))
		}
		scope = scope.WithInitializer(normal(scope, initialDeviation))
		for i := range c.halvings() {
			layer := scope.In("layer_%d", i)
			x = cnn.Convolution(layer, x).Channels(c.Width << i).KernelSize(4).Strides(2).PadSame().UseBias(false).Done()
			if i > 0 {
				x = cnn.BatchNorm(layer, x).Done()
			}
			x = activation.LeakyReluWith(x, 0.2)
		}
		x = cnn.Convolution(scope.In("logits"), x).Channels(1).KernelSize(4).UseBias(false).Done()
		return graph.Reshape(x, -1, 1)
	}
}
