package augment

import (
	"fmt"
	"slices"

	"github.com/gomlx/gomlx/core/graph"

	"gonbatch/internal/plural"
)

// Normalize subtracts the mean of each channel of x, [batch, height, width, channels] of a
// floating-point type, and divides by its standard deviation, in training and elsewhere. It
// computes in at least float32, and rounds once. It is data.Normalize in the graph, and
// torchvision's Normalize.
func Normalize(x *graph.Node, mean, std []float32) *graph.Node {
	checkValues("Normalize", x)
	if channels := x.Shape().Dimensions[3]; len(mean) != channels || len(std) != channels {
		panic(fmt.Errorf("augment.Normalize: %s and %s for %s: give one of each for a channel", plural.Of(len(mean), "mean"), plural.Of(len(std), "standard deviation"), plural.Of(channels, "channel")))
	}
	if slices.ContainsFunc(std, func(s float32) bool { return !(s > 0) }) {
		panic(fmt.Errorf("augment.Normalize: the standard deviations must be more than 0, got %v", std))
	}
	wide := widened(x)
	perChannel := func(numbers []float32) *graph.Node {
		return graph.Reshape(graph.ConstAsDType(x.Graph(), wide.DType(), numbers), 1, 1, 1, -1)
	}
	return graph.ConvertDType(graph.Div(graph.Sub(wide, perChannel(mean)), perChannel(std)), x.DType())
}
