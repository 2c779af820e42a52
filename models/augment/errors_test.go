package augment_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"gonbatch/models/augment"
	"gonbatch/models/modelstest"
)

var photos = []int{2, 4, 4, 3}

// mistakes are wrong arguments, the size of the images, and what the error says.
var mistakes = []struct {
	f    function
	size []int
	want string
}{
	{flipping(0.5), []int{2, 4, 4}, "augment.RandomFlip: x has the shape (Float32)[2, 4, 4]; it must be [batch, height, width, channels]: use graph.InsertAxes"},
	{flipping(50), photos, "augment.RandomFlip: the probability must be from 0 to 1, got 50"},
	{flipping(math.NaN()), photos, "got NaN"},
	{func(s *model.Scope, x *graph.Node) *graph.Node { return augment.RandomCrop(s, x, -1) }, photos, "augment.RandomCrop: the padding can't be negative, got -1"},
	{func(s *model.Scope, x *graph.Node) *graph.Node { return augment.RandomCrop(s, x, 1<<30) }, photos, "augment.RandomCrop: the padding must be at most 65536, got 1073741824"},
	{coloring(0.1, 1.5, 0.1), photos, "augment.RandomColor: the contrast must be from 0 to 1, got 1.5"},
	{coloring(-1, 0, 0), photos, "augment.RandomColor: the brightness must be from 0 to 1, got -1"},
	{onBytes(coloring(0.1, 0.1, 0.1)), photos, "augment.RandomColor: x has the type Uint8; it must be floating-point: for bytes from 0 to 255, use graph.DivScalar(graph.ConvertDType(x, dtypes.Float32), 255)"},
	{normalizing([]float32{1}, []float32{1}), photos, "augment.Normalize: 1 mean and 1 standard deviation for 3 channels"},
	{normalizing([]float32{1, 1, 1}, []float32{1, 0, 1}), photos, "augment.Normalize: the standard deviations must be more than 0, got [1 0 1]"},
	{resizing(0), photos, "augment.RandomResizedCrop: the smallest part must be more than 0 and at most 1, got 0"},
	{onBytes(resizing(0.5)), photos, "augment.RandomResizedCrop: x has the type Uint8"},
	{sizing(0, 3), photos, "augment.Resize: the size must be at least 1x1, got 0x3"},
	{onBytes(sizing(2, 2)), photos, "augment.Resize: x has the type Uint8"},
	{centering(5, 4), photos, "augment.CenterCrop: the size must be from 1x1 to the 4x4 of the images, got 5x4"},
	{centering(2, 0), photos, "augment.CenterCrop: the size must be from 1x1 to the 4x4 of the images, got 2x0"},
	{centering(2, 2), []int{2, 4, 4}, "augment.CenterCrop: x has the shape (Float32)[2, 4, 4]"},
	{mixing(0), photos, "augment.MixUp: alpha must be more than 0 and at most 1, got 0"},
	{onBytes(mixing(0.2)), photos, "augment.MixUp: x has the type Uint8"},
	{func(_ *model.Scope, x *graph.Node) *graph.Node {
		return augment.Mix(x, graph.Slice(x, graph.AxisRange(0, 1)))
	}, []int{3, 1}, "augment.Mix: weights of the shape (Float32)[1, 1] for x of the shape (Float32)[3, 1]: pass the weights that MixUp has returned for the same batch"},
	{func(_ *model.Scope, x *graph.Node) *graph.Node {
		return augment.MixUpLoss([]*graph.Node{x}, []*graph.Node{x})
	}, photos, "augment.MixUpLoss: got 1 label tensor and 1 prediction; it needs labels, and two predictions, []*graph.Node{logits, weights}, where augment.MixUp returns weights"},
	{func(_ *model.Scope, x *graph.Node) *graph.Node {
		labels := graph.ConvertDType(x, dtypes.Int32)
		return augment.MixUpLoss([]*graph.Node{labels}, []*graph.Node{x, x})
	}, []int{2, 3}, "augment.MixUpLoss: the labels have the shape (Int32)[2, 3]; numbers of classes must be [batch, 1]"},
}

// TestErrors: a wrong argument is an error in evaluations too, so that it doesn't wait for a
// training run.
func TestErrors(t *testing.T) {
	for _, tt := range mistakes {
		for _, training := range []bool{true, false} {
			t.Run(fmt.Sprint(tt.want, training), func(t *testing.T) {
				p := compiled(t, training, func(s *model.Scope, x *graph.Node) []*graph.Node { return []*graph.Node{tt.f(s, x)} })
				_, err := p.exec.Call(modelstest.Noise(1, tt.size...))
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("the error is %v", err)
				}
			})
		}
	}
}

func flipping(p float64) function {
	return func(s *model.Scope, x *graph.Node) *graph.Node { return augment.RandomFlip(s, x, p) }
}

func coloring(b, c, saturation float64) function {
	return func(s *model.Scope, x *graph.Node) *graph.Node { return augment.RandomColor(s, x, b, c, saturation) }
}

func normalizing(mean, std []float32) function {
	return func(_ *model.Scope, x *graph.Node) *graph.Node { return augment.Normalize(x, mean, std) }
}

func mixing(alpha float64) function {
	return func(s *model.Scope, x *graph.Node) *graph.Node { y, _ := augment.MixUp(s, x, alpha); return y }
}

func resizing(smallest float64) function {
	return func(s *model.Scope, x *graph.Node) *graph.Node { return augment.RandomResizedCrop(s, x, smallest) }
}

func onBytes(f function) function {
	return func(s *model.Scope, x *graph.Node) *graph.Node { return f(s, graph.ConvertDType(x, dtypes.Uint8)) }
}
