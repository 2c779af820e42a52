package augment

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
)

// RandomFlip flips each image of x, [batch, height, width, channels] of any type, from left to
// right with this probability, in training. It is data.RandomFlip in the graph, and torchvision's
// RandomHorizontalFlip, which draws once for a whole batch.
func RandomFlip(scope *model.Scope, x *graph.Node, probability float64) *graph.Node {
	checkImages("RandomFlip", x)
	checkFraction("RandomFlip", "the probability", probability)
	if probability == 0 || !scope.IsTraining(x.Graph()) {
		return x
	}
	number := draw(scope, x, 1).number(0)
	return flip(x, graph.LessThan(number, graph.Scalar(x.Graph(), dtypes.Float32, probability)))
}

// flip flips the images for which which, [batch], is true. A flip is its own inverse, so the
// gradient is flipped as the image is.
func flip(x, which *graph.Node) *graph.Node {
	return linear{
		forward:  func(x *graph.Node) *graph.Node { return graph.Where(which, graph.Reverse(x, 2), x) },
		gradient: func(v *graph.Node) *graph.Node { return flip(v, which) },
	}.of(x)
}
