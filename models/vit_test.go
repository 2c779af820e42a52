package models_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"gonbatch/models"
	"gonbatch/models/modelstest"
)

// tinyViT is a ViT whose reference is quick.
var tinyViT = models.ViTConfig{ImageSize: 12, PatchSize: 4, Classes: 5, Layers: 2, Heads: 3, Width: 12}

// TestViTParameters: the usual sizes have as many parameters as timm's.
func TestViTParameters(t *testing.T) {
	for want, config := range map[int]models.ViTConfig{5_717_416: models.ViTTiny(1000), 22_050_664: models.ViTSmall(1000), 86_567_656: models.ViTBase(1000)} {
		if n := config.Parameters(); n != want || config.Validate() != nil {
			t.Errorf("%+v has %d parameters, want %d; %v", config, n, want, config.Validate())
		}
	}
	c := tinyViT
	c.Hidden, c.Channels = 20, 2
	if n := parameters(t, models.ViT(c), 1, 12, 12, 2); n != c.Parameters() {
		t.Errorf("%d parameters, Parameters returns %d", n, c.Parameters())
	}
}

// parameters counts the trainable parameters that a network creates for an input. It compiles
// nothing.
func parameters(t *testing.T, network func(*model.Scope, *graph.Node) *graph.Node, size ...int) (n int) {
	t.Helper()
	store := model.NewStore()
	g := graph.NewGraph(modelstest.Backend(t), t.Name())
	defer g.Finalize()
	network(store.RootScope(), graph.Parameter(g, "x", shapes.Make(dtypes.Float32, size...)))
	for v := range store.IterVariables() {
		if v.Trainable {
			n += v.Shape().Size()
		}
	}
	return n
}

// TestViTLearns: a few steps on one batch must fit it, so the gradient reaches every layer.
func TestViTLearns(t *testing.T) {
	c := models.ViTTiny(10)
	c.ImageSize, c.PatchSize, c.Layers, c.Heads, c.Width, c.Dropout = 16, 4, 3, 2, 32, 0.05
	step := trainer(t, models.ViT(c), 16, []int{16, 16, 3})
	first := step()
	if guess := math.Log(10); math.Abs(float64(first)-guess) > 0.1*guess {
		t.Errorf("the initial loss is %g, want about ln 10 = %g", first, guess)
	}
	var last float32
	for range 80 {
		last = step()
	}
	if !(last < first/4) {
		t.Errorf("loss fell from %v to %v in 80 steps on one batch, want less than a quarter", first, last)
	}
}

// TestViTDropout: dropout changes what a training sees, and nothing else, in every precision.
func TestViTDropout(t *testing.T) {
	dropping := tinyViT
	dropping.Dropout = 0.3
	for _, dtype := range []dtypes.DType{dtypes.Float32, dtypes.BFloat16} {
		store := model.NewStore()
		logits := func(c models.ViTConfig, training bool) []float32 {
			out, err := model.CallOnce(modelstest.Backend(t), store, func(scope *model.Scope, x *graph.Node) *graph.Node {
				store.SetTraining(x.Graph(), training)
				return graph.ConvertDType(models.ViT(c)(scope, graph.ConvertDType(x, dtype)), dtypes.Float32)
			}, modelstest.Noise(1, 2, 12, 12, 3))
			if err != nil {
				t.Fatal(err)
			}
			return tensors.MustCopyFlatData[float32](out)
		}
		want := logits(tinyViT, false)
		if slices.Max(want) == 0 {
			t.Errorf("%s: the logits are %v", dtype, want)
		}
		if got := logits(dropping, false); !slices.Equal(got, want) {
			t.Errorf("%s: dropout changes predictions", dtype)
		}
		if a, b := logits(dropping, true), logits(dropping, true); slices.Equal(a, want) || slices.Equal(a, b) {
			t.Errorf("%s: in a training, dropout changes nothing, or twice the same", dtype)
		}
	}
}

func TestViTRefuses(t *testing.T) {
	change := func(f func(*models.ViTConfig)) models.ViTConfig { c := tinyViT; f(&c); return c }
	for want, config := range map[string]models.ViTConfig{
		"models.ViTConfig: ImageSize must be at least 1, got 0":         {},
		"PatchSize must be at least 1, got -4":                          change(func(c *models.ViTConfig) { c.PatchSize = -4 }),
		"Channels must be at least 1, got -1":                           change(func(c *models.ViTConfig) { c.Channels = -1 }),
		"Classes must be at least 1, got 0":                             change(func(c *models.ViTConfig) { c.Classes = 0 }),
		"Layers must be at least 1, got 0":                              change(func(c *models.ViTConfig) { c.Layers = 0 }),
		"Heads must be at least 1, got 0":                               change(func(c *models.ViTConfig) { c.Heads = 0 }),
		"Width must be at least 1, got 0":                               change(func(c *models.ViTConfig) { c.Width = 0 }),
		"Hidden must be at least 1, got -2":                             change(func(c *models.ViTConfig) { c.Hidden = -2 }),
		"ImageSize must be a multiple of PatchSize = 5, got 12":         change(func(c *models.ViTConfig) { c.PatchSize = 5 }),
		"Width must be a multiple of Heads = 5, got 12":                 change(func(c *models.ViTConfig) { c.Heads = 5 }),
		"Dropout must be at least 0 and less than 1, got 1":             change(func(c *models.ViTConfig) { c.Dropout = 1 }),
		"models.ViT: x has shape (Float32)[1, 12, 12, 3]; it must be [": change(func(c *models.ViTConfig) { c.Channels = 1 }),
	} {
		refuses(t, models.ViT(config), []int{1, 12, 12, 3}, want)
	}
	refuses(t, models.ViT(tinyViT), []int{1, 432}, "models.ViT: x has shape (Float32)[1, 432]; it must be [batch, 12, 12, 3]")
}

// refuses checks the error of a network for an input.
func refuses(t *testing.T, network func(*model.Scope, *graph.Node) *graph.Node, size []int, want string) {
	t.Helper()
	t.Run(want, func(t *testing.T) {
		_, err := model.CallOnce(modelstest.Backend(t), model.NewStore(), network, modelstest.Noise(1, size...))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	})
}
