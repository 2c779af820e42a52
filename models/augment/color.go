package augment

import (
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
)

// RandomColor changes the brightness, the contrast and the saturation of each image of x, [batch,
// height, width, channels] of a floating-point type, in this order, each by a random factor from
// 1-f to 1+f, where f is the number given for it, from 0 (no change) to 1, in training. Values must
// be from 0 to 1, so it comes before Normalize; a graph can't refuse others, and they are clipped.
// The saturation of images with other than 3 channels doesn't change. It computes in at least
// float32, and rounds once.
//
// It is data.RandomColor in the graph, and computes what torchvision's ColorJitter does, except
// that ColorJitter changes the three in random order.
func RandomColor(scope *model.Scope, x *graph.Node, brightness, contrast, saturation float64) *graph.Node {
	checkValues("RandomColor", x)
	checkFraction("RandomColor", "the brightness", brightness)
	checkFraction("RandomColor", "the contrast", contrast)
	checkFraction("RandomColor", "the saturation", saturation)
	if brightness == 0 && contrast == 0 && saturation == 0 || !scope.IsTraining(x.Graph()) {
		return x
	}
	d, y := draw(scope, x, 3), widened(x)
	factor := func(i int, most float64) *graph.Node {
		number := graph.ConvertDType(d.number(i), y.DType())
		return perImage(graph.OnePlus(graph.MulScalar(graph.AddScalar(graph.MulScalar(number, 2), -1), most)))
	}
	if brightness > 0 {
		y = clipped(graph.Mul(y, factor(0, brightness)))
	}
	if contrast > 0 {
		y = blend(y, factor(1, contrast), graph.ReduceAndKeep(luma(y), graph.ReduceMean, 1, 2))
	}
	if saturation > 0 && y.Shape().Dimensions[3] == 3 {
		y = blend(y, factor(2, saturation), luma(y))
	}
	return graph.ConvertDType(y, x.DType())
}

// blend moves values away from others, by a factor above 1, or towards them.
func blend(values, factor, from *graph.Node) *graph.Node {
	return clipped(graph.Add(from, graph.Mul(factor, graph.Sub(values, from))))
}

func clipped(values *graph.Node) *graph.Node { return graph.ClipScalar(values, 0, 1) }

// luma is the brightness of pixels, [batch, height, width, 1]: that of their colors, or the mean of
// their channels.
func luma(x *graph.Node) *graph.Node {
	channels := x.Shape().Dimensions[3]
	var sum *graph.Node
	for i := range channels {
		share := 1 / float64(channels)
		if channels == 3 {
			share = []float64{0.299, 0.587, 0.114}[i] // ITU-R BT.601, as in JPEG.
		}
		channel := graph.MulScalar(graph.Slice(x, graph.AxisRange(), graph.AxisRange(), graph.AxisRange(), graph.AxisRange(i, i+1)), share)
		if sum == nil {
			sum = channel
		} else {
			sum = graph.Add(sum, channel)
		}
	}
	return sum
}
