package cnn

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/compute/support/xslices"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers/norm"
	"github.com/gomlx/gomlx/ml/layers/regularizer"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/model/initializer"
	"github.com/gomlx/gomlx/ml/train"

	"gonbatch/internal/layerhooks"
)

// BatchNormBuilder configures a batch normalization. Create it with [BatchNorm], and call Done.
type BatchNormBuilder struct {
	scope             *model.Scope
	x                 *graph.Node
	momentum, epsilon float64
	trainable, frozen bool
}

// BatchNorm normalizes each channel of x, [..., channels], over all other axes, and then scales and
// shifts it by learned parameters (Ioffe and Szegedy, Batch Normalization, 2015,
// https://arxiv.org/abs/1502.03167). In training it uses the mean and variance of the batch, and
// keeps moving averages of them for inference.
//
// It replaces GoMLX's norm.BatchNorm(scope, x, -1): it has the same values, gradients and
// variables, so each can load the other's checkpoints, and norm.UpdateBatchNormAverages works. Its
// defaults are PyTorch's, and those of GoMLX are .Momentum(0.99).Epsilon(1e-3). On a CPU its
// gradient takes a fifth of the time.
//
// In a training run on several ranks, package trainer makes it normalize over the whole batch; in
// your own loop, World.SyncBatchNorm does. Otherwise each rank uses its own part of the batch.
// Ranks must have parts of the same size.
func BatchNorm(scope *model.Scope, x *graph.Node) *BatchNormBuilder {
	return &BatchNormBuilder{scope: scope, x: x, momentum: 0.9, epsilon: 1e-5, trainable: true}
}

// Momentum sets the weight of the past in the moving averages. The default is 0.9,
// which is PyTorch's: its momentum, 0.1, is the weight of the present. Keras and GoMLX have 0.99.
func (b *BatchNormBuilder) Momentum(momentum float64) *BatchNormBuilder {
	b.momentum = momentum
	return b
}

// Epsilon sets the value that is added to the variance before its square root is taken. The default
// is 1e-5, as in PyTorch. Keras and GoMLX have 1e-3.
func (b *BatchNormBuilder) Epsilon(epsilon float64) *BatchNormBuilder {
	b.epsilon = epsilon
	return b
}

// Trainable sets whether the layer is trained. If false, it normalizes by the moving averages in
// training too, and does not change them. The default is true.
func (b *BatchNormBuilder) Trainable(trainable bool) *BatchNormBuilder {
	b.trainable = trainable
	return b
}

// FrozenAverages sets whether to normalize by the moving averages in training too, without changing
// them. Scale and offset are still trained. The default is false.
func (b *BatchNormBuilder) FrozenAverages(frozen bool) *BatchNormBuilder {
	b.frozen = frozen
	return b
}

// Done builds the layer and returns the normalized x.
func (b *BatchNormBuilder) Done() *graph.Node {
	if b.trainable && !b.frozen {
		b.scope.Store().Scope(model.RootScopePath).SetParam(norm.AveragesUpdatesTriggerParam, true)
	}
	n := b.variables()
	phase := model.GetGraphParamOr(n.scope, n.x.Graph(), train.BatchNormalizationUpdatePhase, -1)
	switch {
	case phase >= 0 && b.frozen:
		return b.narrowed(n.inTypeOfAverages().byAverages())
	case phase >= 0: // norm.UpdateBatchNormAverages runs the model to collect the averages.
		n = n.inTypeOfAverages()
		mean, variance := moments(n.x)
		n.average.update(mean, variance, b.momentum)
		if phase > 0 {
			return b.narrowed(n.byAverages())
		}
		return b.narrowed(n.by(mean, variance))
	case b.trainable && !b.frozen && n.scope.IsTraining(n.x.Graph()):
		y, mean, variance := n.byBatch()
		n.average.update(mean, variance, b.momentum)
		return y
	}
	return b.narrowed(n.inTypeOfAverages().byAverages())
}

// narrowed returns y in the type of x.
func (b *BatchNormBuilder) narrowed(y *graph.Node) *graph.Node {
	return graph.ConvertDType(y, b.x.DType())
}

// variables creates the layer's variables, with GoMLX's names.
func (b *BatchNormBuilder) variables() normalization {
	scope := b.scope.In(norm.BatchNormalizationScopeName)
	shape := shapes.Make(b.x.DType(), lastDimension(b.x))
	if types := layerhooks.PrecisionOf(b.x.Graph()); types.Mixed() && shape.DType == types.Compute {
		shape.DType = types.Weights
	}
	variable := func(name string, value model.VariableInitializer, trainable bool) *model.Variable {
		return scope.WithInitializer(value).VariableWithShape(name, shape).SetTrainable(trainable)
	}
	scale, offset := variable("scale", initializer.One, true), variable("offset", initializer.Zero, true)
	if l2 := model.GetParamOr(scope, regularizer.ParamL2, 0.0); l2 > 0 {
		term := graph.MulScalar(graph.ReduceAllSum(graph.Square(scale.NodeValue(b.x.Graph()))), l2)
		train.AddRegularizationLoss(graph.ConvertDType(term, b.x.DType())) // The type of the other layers' terms, to which GoMLX adds it.
	}
	return normalization{
		scope: scope, x: b.x, epsilon: b.epsilon, scale: scale.NodeValue(b.x.Graph()), offset: offset.NodeValue(b.x.Graph()),
		average: averages{
			mean:     variable("mean", initializer.Zero, false),
			variance: variable("variance", initializer.One, false),
			count:    variable("avg_weight", initializer.Zero, false),
		},
	}
}

// averages are the moving averages, over count steps.
type averages struct {
	mean, variance, count *model.Variable
}

// update moves the averages towards those of a batch. The first steps have a larger weight, so that
// the initial values are forgotten at once.
func (a averages) update(mean, variance *graph.Node, momentum float64) {
	g := mean.Graph()
	count := graph.OnePlus(a.count.NodeValue(g))
	a.count.SetNodeValue(count)
	keep := graph.Min(graph.Scalar(g, mean.DType(), momentum), graph.OneMinus(graph.Reciprocal(count)))
	move := func(v *model.Variable, to *graph.Node) {
		past := v.NodeValue(g)
		v.SetNodeValue(graph.Add(graph.Mul(keep, past), graph.Mul(graph.OneMinus(keep), graph.StopGradient(to))))
	}
	move(a.mean, mean)
	move(a.variance, variance)
}

// normalization is a normalization of x.
type normalization struct {
	scope            *model.Scope
	x, scale, offset *graph.Node
	epsilon          float64
	average          averages
	overRanks        layerhooks.MeanFn // Nil if each rank uses its own part of a batch.
}

// inTypeOfAverages computes in the type of the moving averages, which is wider than that of x in
// mixed precision.
func (n normalization) inTypeOfAverages() normalization {
	n.x = graph.ConvertDType(n.x, n.average.mean.DType())
	return n
}

// byAverages normalizes by the moving averages.
func (n normalization) byAverages() *graph.Node {
	g := n.x.Graph()
	return n.by(n.average.mean.NodeValue(g), n.average.variance.NodeValue(g))
}

// by normalizes by a mean and a variance.
func (n normalization) by(mean, variance *graph.Node) *graph.Node {
	factor := graph.Mul(n.scale, n.inverseDeviation(variance))
	return graph.Add(graph.Mul(graph.Sub(n.x, n.over(mean)), n.over(factor)), n.over(n.offset))
}

// over gives a value per channel the rank of x.
func (n normalization) over(channels *graph.Node) *graph.Node {
	return graph.ExpandLeftToRank(channels, n.x.Rank())
}

func (n normalization) inverseDeviation(variance *graph.Node) *graph.Node {
	return graph.Rsqrt(graph.AddScalar(variance, n.epsilon))
}

// byBatch normalizes by the mean and variance of the batch, and returns both.
func (n normalization) byBatch() (y, mean, variance *graph.Node) {
	if n.x.DType().IsHalfPrecision() {
		return n.widened()
	}
	n.overRanks = layerhooks.Mean(n.x.Graph())
	if !fast(n.x) && n.overRanks == nil {
		return graph.InternalBatchNormForTraining(n.x, n.scale, n.offset, float32(n.epsilon), -1)
	}
	mean, variance = n.moments()
	y = operation{
		plain: func(in []*graph.Node) *graph.Node {
			y, _, _ := graph.InternalBatchNormForTraining(in[0], in[1], in[2], float32(n.epsilon), -1)
			return y
		},
		forward:   func() *graph.Node { return n.by(mean, variance) },
		gradients: n.gradients(mean, n.inverseDeviation(variance)),
	}.of(n.x, n.scale, n.offset)
	return y, mean, variance
}

// widened computes byBatch in float32: sums of half precision lose too much, and those of float16
// overflow.
func (n normalization) widened() (y, mean, variance *graph.Node) {
	own, average := n.x.DType(), n.average.mean.DType()
	for _, node := range []**graph.Node{&n.x, &n.scale, &n.offset} {
		*node = graph.ConvertDType(*node, dtypes.Float32)
	}
	y, mean, variance = n.byBatch()
	return graph.ConvertDType(y, own), graph.ConvertDType(mean, average), graph.ConvertDType(variance, average)
}

// gradients returns the gradients of byBatch with respect to x, scale and offset. With c = x - mean
// and d = 1/deviation, over m values of a channel, they are
//
//	scale*d * (v - sum(v)/m - c * d^2 * sum(v*c)/m),  d * sum(v*c),  sum(v)
//
// as in the paper, section 3. Over several ranks, whose parts have the same size, sum/m is the mean
// of the ranks' own sum/m, as the gradient of the mean of the ranks' losses is the mean of their
// gradients. The optimizer takes this mean of the gradients of scale and offset.
func (n normalization) gradients(mean, d *graph.Node) []func(v *graph.Node) *graph.Node {
	centered := graph.Sub(n.x, n.over(mean))
	product := func(v *graph.Node) *graph.Node { return channelSum(graph.Mul(v, centered)) }
	one := 1 / float64(n.x.Shape().Size()/lastDimension(n.x))
	return []func(v *graph.Node) *graph.Node{
		func(v *graph.Node) *graph.Node {
			factor := graph.Mul(n.scale, d)
			meanV, meanProduct := n.overBatch(graph.MulScalar(channelSum(v), one), graph.MulScalar(product(v), one))
			shift := graph.Mul(factor, meanV)
			slope := graph.Mul(graph.Mul(factor, graph.Square(d)), meanProduct)
			return graph.Sub(graph.Sub(graph.Mul(v, n.over(factor)), n.over(shift)), graph.Mul(centered, n.over(slope)))
		},
		func(v *graph.Node) *graph.Node { return graph.Mul(d, product(v)) },
		channelSum,
	}
}

// overBatch returns the means over the ranks of two values per channel, by one all-reduce. If each
// rank uses its own part of the batch, it returns them unchanged.
func (n normalization) overBatch(a, b *graph.Node) (meanA, meanB *graph.Node) {
	if n.overRanks == nil {
		return a, b
	}
	both := n.overRanks(graph.Stack([]*graph.Node{a, b}, 0))
	return graph.Squeeze(graph.Slice(both, graph.AxisElem(0)), 0), graph.Squeeze(graph.Slice(both, graph.AxisElem(1)), 0)
}

// moments returns the mean and variance of each channel, over the ranks too if they are
// synchronized. The variance is that around the common mean: mean(x^2) - mean(x)^2 would lose the
// digits of a variance that is small compared with the mean.
func (n normalization) moments() (mean, variance *graph.Node) {
	if n.overRanks == nil {
		return moments(n.x)
	}
	mean = n.overRanks(channelMean(n.x))
	return mean, n.overRanks(channelMean(graph.Square(graph.Sub(n.x, n.over(mean)))))
}

// moments returns the mean and variance of each channel.
func moments(x *graph.Node) (mean, variance *graph.Node) {
	mean = channelMean(x)
	return mean, channelMean(graph.Square(graph.Sub(x, graph.ExpandLeftToRank(mean, x.Rank()))))
}

func channelMean(x *graph.Node) *graph.Node {
	return graph.MulScalar(channelSum(x), 1/float64(x.Shape().Size()/lastDimension(x)))
}

// channelSum returns the sum of x over all axes but the last, which has the channels. On a CPU it
// multiplies the pixels of each image by ones, as a matrix product, and then adds up the images.
// XLA compiles the products to vector instructions. A reduction over the pixels takes up to ten
// times as long, because XLA fuses the computation of its input into a loop that jumps from pixel
// to pixel. (A GPU may round the factors of a product, and reduces fast.)
func channelSum(x *graph.Node) *graph.Node {
	if x.Rank() < 3 || !fast(x) {
		return graph.ReduceSum(x, xslices.Iota(0, x.Rank()-1)...)
	}
	images, channels := x.Shape().Dimensions[0], lastDimension(x)
	pixels := x.Shape().Size() / (images * channels)
	ones := graph.Ones(x.Graph(), shapes.Make(x.DType(), images, 1, pixels))
	sums := graph.DotGeneral(ones, []int{2}, []int{0}, graph.Reshape(x, images, pixels, channels), []int{1}, []int{0})
	return graph.ReduceSum(graph.Reshape(sums, images, channels), 0)
}

func lastDimension(x *graph.Node) int { return x.Shape().Dimensions[x.Rank()-1] }
