package models_test

import (
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"gonbatch/models"
	"gonbatch/models/modelstest"
)

// TestDCGANParameters: with the defaults there are as many as in PyTorch's example.
func TestDCGANParameters(t *testing.T) {
	for _, c := range []struct{ size, generator, discriminator int }{{32, 1_068_928, 663_296}, {64, 3_576_704, 2_765_568}} {
		config := models.DCGANConfig{ImageSize: c.size}
		if n := parameters(t, models.DCGANGenerator(config), 1, 100); n != c.generator {
			t.Errorf("the generator has %d parameters, want %d", n, c.generator)
		}
		if n := parameters(t, models.DCGANDiscriminator(config), 1, c.size, c.size, 3); n != c.discriminator {
			t.Errorf("the discriminator has %d parameters, want %d", n, c.discriminator)
		}
	}
}

// TestInitialDeviation: the initial weights have the right standard deviation, with half precision
// too.
func TestInitialDeviation(t *testing.T) {
	for _, dtype := range []dtypes.DType{dtypes.Float32, dtypes.BFloat16} {
		store := model.NewStore()
		_, err := model.CallOnce(modelstest.Backend(t), store, func(scope *model.Scope, x *graph.Node) *graph.Node {
			x = graph.ConvertDType(x, dtype)
			vit := models.ViT(models.ViTConfig{ImageSize: 32, PatchSize: 4, Classes: 1, Layers: 1, Heads: 2, Width: 64})
			return graph.Add(models.DCGANDiscriminator(models.DCGANConfig{ImageSize: 32})(scope.In("dcgan"), x), vit(scope.In("vit"), x))
		}, modelstest.Noise(1, 1, 32, 32, 3))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"/dcgan/layer_1/conv/weights", "/vit/patches/conv/weights", "/vit/positions", "/vit/layer_0/mlp/hidden/weights"} {
			out, err := model.CallOnce(modelstest.Backend(t), store, func(scope *model.Scope, one *graph.Node) *graph.Node {
				x := graph.ConvertDType(scope.Store().GetVariable(path).NodeValue(one.Graph()), dtypes.Float32)
				return graph.Sqrt(graph.ReduceAllMean(graph.Square(x)))
			}, float32(1))
			if err != nil {
				t.Fatal(err)
			}
			if got := tensors.ToScalar[float32](out); got < 0.018 || got > 0.022 {
				t.Errorf("%s: %s has the standard deviation %g, want 0.02", dtype, path, got)
			}
		}
	}
}

// TestDCGANLearns: the loss of each network falls while only that network learns, so the gradient
// of the generator's passes through the discriminator.
func TestDCGANLearns(t *testing.T) {
	store := model.NewStore()
	store.SetParam("initializers_seed", int64(42))
	images, z := modelstest.Noise(3, 4, 32, 32, 1), modelstest.Noise(4, 4, 10)
	for i, learner := range []string{"/discriminator", "/generator"} {
		step := competition(t, store, learner)
		losses := func() float32 {
			out, err := step.Exec(images, z)
			if err != nil {
				t.Fatal(err)
			}
			return tensors.ToScalar[float32](out[i])
		}
		first := losses()
		for range 10 {
			losses()
		}
		if last := losses(); !(last < first*0.7) {
			t.Errorf("the loss of the %s fell from %v to %v in 10 steps, want less than 70 %%", learner[1:], first, last)
		}
	}
}

// competition returns a step of gradient descent of one of two networks. It returns the losses of
// the discriminator and the generator.
func competition(t *testing.T, store *model.Store, learner string) *model.Exec {
	t.Helper()
	c := models.DCGANConfig{ImageSize: 32, Channels: 1, NoiseSize: 10, Width: 8}
	return model.MustNewExec(modelstest.Backend(t), store, func(scope *model.Scope, in []*graph.Node) []*graph.Node {
		store.SetTraining(in[0].Graph(), true)
		d := scope.In("discriminator")
		real := models.DCGANDiscriminator(c)(d, in[0])
		fake := models.DCGANDiscriminator(c)(d.ResetVisited(), models.DCGANGenerator(c)(scope.In("generator"), in[1]))
		losses := []*graph.Node{
			graph.ReduceAllMean(graph.Add(graph.Softplus(graph.Neg(real)), graph.Softplus(fake))),
			graph.ReduceAllMean(graph.Softplus(graph.Neg(fake))),
		}
		loss := losses[0]
		if learner == "/generator" {
			loss = losses[1]
		}
		var variables []*model.Variable
		var values []*graph.Node
		for v := range store.IterVariables() {
			if v.Trainable && strings.HasPrefix(v.Path(), learner) {
				variables, values = append(variables, v), append(values, v.NodeValue(loss.Graph()))
			}
		}
		for i, gradient := range graph.Gradient(loss, values...) {
			variables[i].SetNodeValue(graph.Sub(values[i], graph.MulScalar(gradient, 0.05)))
		}
		return losses
	})
}

func TestDCGANRefuses(t *testing.T) {
	for want, c := range map[string]models.DCGANConfig{
		"models.DCGANConfig: ImageSize must be 32 or 64, or 0 for 64, got 28": {ImageSize: 28},
		"Channels must be at least 1, or 0 for 3, got -1":                     {Channels: -1},
		"NoiseSize must be at least 1, or 0 for 100, got -1":                  {NoiseSize: -1},
		"Width must be at least 1, or 0 for 64, got -1":                       {Width: -1},
		"models.DCGANGenerator: z has shape (Float32)[2, 99]; it must be [ba": {},
	} {
		refuses(t, models.DCGANGenerator(c), []int{2, 99}, want)
	}
	refuses(t, models.DCGANDiscriminator(models.DCGANConfig{}), []int{2, 32, 32, 3}, "models.DCGANDiscriminator: x has shape (Float32)[2, 32, 32, 3]; it must be [batch, 64, 64, 3]")
	refuses(t, models.DCGANDiscriminator(models.DCGANConfig{Width: -3}), []int{2, 64, 64, 3}, "Width must be at least 1")
}
