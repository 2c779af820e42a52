package augment

import (
	"fmt"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train/loss"

	"gonbatch/internal/plural"
)

// MixUp mixes each example of x, [batch, ...] of a floating-point type, with the one before it in
// the batch, and the first with the last, in training: it becomes w·own + (1-w)·other, with a
// random w from the distribution Beta(alpha, alpha) for each example (Zhang et al., mixup: Beyond
// Empirical Risk Minimization, 2017, https://arxiv.org/abs/1710.09412). alpha is more than 0 and at
// most 1; 0.2 is usual. The weights, [batch, 1] float32, mix the labels in the same way: return
// them as a second prediction, for MixUpLoss, or call Mix. Outside of training they are 1, and
// trainer.Predict returns them too.
//
//	func net(scope *model.Scope, inputs []*graph.Node) []*graph.Node {
//		x, weights := augment.MixUp(scope, inputs[0], 0.2)
//		return []*graph.Node{logits(scope, x), weights}
//	}
//
//	task := trainer.Supervised(net, augment.MixUpLoss, opt, metric.NewSparseCategoricalAccuracy("Mean Accuracy", "#acc"))
//
// It is data.MixUp in the graph, which mixes with any example of the dataset. torchvision's MixUp
// draws one w for a whole batch.
func MixUp(scope *model.Scope, x *graph.Node, alpha float64) (mixed, weights *graph.Node) {
	checkExamples("MixUp", x)
	if !(alpha > 0 && alpha <= 1) {
		panic(fmt.Errorf("augment.MixUp: alpha must be more than 0 and at most 1, got %g", alpha))
	}
	if !scope.IsTraining(x.Graph()) {
		return x, graph.Ones(x.Graph(), shapes.Make(dtypes.Float32, x.Shape().Dimensions[0], 1))
	}
	weights = graph.InsertAxes(beta(draw(scope, x, 2*attempts), alpha), -1)
	return Mix(x, weights), weights
}

// Mix mixes the examples of x, such as the probabilities of classes, [batch, classes], with the
// weights that MixUp has returned. It computes in at least float32, and rounds once.
func Mix(x, weights *graph.Node) *graph.Node {
	checkExamples("Mix", x)
	batch := x.Shape().Dimensions[0]
	if weights.Shape().Size() != batch {
		panic(fmt.Errorf("augment.Mix: weights of the shape %s for x of the shape %s: pass the weights that MixUp has returned for the same batch", weights.Shape(), x.Shape()))
	}
	own := widened(x)
	other := own
	if batch > 1 {
		other = graph.Concatenate([]*graph.Node{graph.Slice(own, graph.AxisRange(batch-1)), graph.Slice(own, graph.AxisRange(0, batch-1))}, 0)
	}
	size := make([]int, x.Rank())
	for i := range size {
		size[i] = 1
	}
	size[0] = batch
	w := graph.Reshape(graph.ConvertDType(weights, own.DType()), size...)
	return graph.ConvertDType(graph.Add(graph.Mul(w, own), graph.Mul(graph.OneMinus(w), other)), x.DType())
}

// MixUpLoss is the cross-entropy of a model that mixes its inputs by MixUp: the mean over the
// examples, of mixed labels. Predictions are logits, [batch, classes], and MixUp's weights. Labels
// are the numbers of classes, [batch, 1] of an integer type, or probabilities, [batch, classes].
// Outside of training, it is loss.SparseCategoricalCrossEntropyLogits.
func MixUpLoss(labels, predictions []*graph.Node) *graph.Node {
	if len(labels) == 0 || len(predictions) != 2 {
		panic(fmt.Errorf("augment.MixUpLoss: got %s and %s; it needs labels, and two predictions, []*graph.Node{logits, weights}, where augment.MixUp returns weights", plural.Of(len(labels), "label tensor"), plural.Of(len(predictions), "prediction")))
	}
	logits := predictions[0]
	probabilities := labels[0]
	if probabilities.DType().IsInt() {
		if probabilities.Rank() != 2 || probabilities.Shape().Dimensions[1] != 1 {
			panic(fmt.Errorf("augment.MixUpLoss: the labels have the shape %s; numbers of classes must be [batch, 1]", probabilities.Shape()))
		}
		probabilities = graph.OneHot(graph.Squeeze(probabilities, 1), logits.Shape().Dimensions[logits.Rank()-1], logits.DType())
	}
	mixed := graph.ConvertDType(Mix(probabilities, predictions[1]), logits.DType())
	return loss.CategoricalCrossEntropyLogits(append([]*graph.Node{mixed}, labels[1:]...), predictions[:1])
}

func checkExamples(name string, x *graph.Node) {
	checkFloats(name, x)
	if x.Rank() == 0 {
		panic(fmt.Errorf("augment.%s: x has the shape %s; it must be [batch, ...]", name, x.Shape()))
	}
}
