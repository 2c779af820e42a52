package step

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/compute/support/xslices"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/model/initializer"
	"github.com/gomlx/gomlx/ml/train"

	"gonbatch/internal/plural"
)

// Trained returns the variables that an objective trains, in the order of their gradients.
func Trained(scope *model.Scope, g *graph.Graph) []*model.Variable {
	var variables []*model.Variable
	for v := range scope.IterVariables() {
		if v.Trainable && v.InUseByGraph(g) {
			variables = append(variables, v)
		}
	}
	return variables
}

// sayUnreached warns once of variables that the loss doesn't depend on, by their gradients, which
// are zeros then.
func (s *Step) sayUnreached(variables []*model.Variable, gradients []*graph.Node) {
	var paths []string
	for i, v := range variables {
		if isZeros(gradients[i]) && !v.ChangedInGraph(gradients[i].Graph()) && s.once("unreached "+v.Path()) { // The model may move it itself.
			paths = append(paths, v.Path())
		}
	}
	switch n := len(paths) - mostNamed; {
	case len(paths) == 0:
		return
	case n > 0:
		paths = append(paths[:mostNamed], fmt.Sprintf("%d more", n))
	}
	s.Printf("warning: no gradient reaches %s: the loss doesn't depend on that, or a StopGradient is between; if it is meant, say so with Freeze\n", strings.Join(paths, ", "))
}

// mostNamed is how many variables a warning names.
const mostNamed = 4

// isZeros reports whether a node is what GoMLX returns as the gradient of a variable that the loss
// doesn't depend on.
func isZeros(x *graph.Node) bool {
	for x.Type() == graph.NodeTypeBroadcastInDim || x.Type() == graph.NodeTypeReshape || x.Type() == graph.NodeTypeConvertDType {
		x = x.Inputs()[0]
	}
	return x.Type() == graph.NodeTypeConstant && x.IsScalar() && shapes.ConvertTo[float64](x.ConstantValue().Value()) == 0
}

// changed returns the gradients that WithGradients leaves.
func (s *Step) changed(variables []*model.Variable, gradients []*graph.Node) []*graph.Node {
	for _, change := range s.Changes {
		before := gradients
		gradients = change(slices.Clone(variables), slices.Clone(gradients))
		if len(gradients) != len(before) {
			panic(fmt.Errorf("trainer: WithGradients: it returns %s for %s", plural.Of(len(gradients), "gradient"), plural.Of(len(before), "variable")))
		}
		for i, gradient := range gradients {
			if want := before[i].Shape(); gradient == nil || !gradient.Shape().Equal(want) {
				panic(fmt.Errorf("trainer: WithGradients: the gradient of %s is %v, want %s", variables[i].Path(), gradient, want))
			}
		}
	}
	return gradients
}

// widened returns the gradients in at least single precision: half precision is too coarse to sum
// over batches, ranks and elements.
func widened(gradients []*graph.Node) []*graph.Node {
	return xslices.Map(gradients, func(gradient *graph.Node) *graph.Node {
		if gradient.DType().IsHalfPrecision() {
			return graph.ConvertDType(gradient, dtypes.Float32)
		}
		return gradient
	})
}

// narrowed returns the gradients in the types of their variables, which optimizers need.
func narrowed(gradients []*graph.Node, variables []*model.Variable) []*graph.Node {
	narrow := make([]*graph.Node, len(gradients))
	for i, gradient := range gradients {
		narrow[i] = graph.ConvertDType(gradient, variables[i].DType())
	}
	return narrow
}

// group is the batches of one update. Their number is a variable, because the last group of an
// epoch may be smaller.
type group struct {
	store *model.Store
	size  *graph.Node // The number of batches so far, this one included, in the graph that is being built.
	ends  bool        // This batch is the last one.
}

// newGroup adds this batch to the group.
func newGroup(store *model.Store, g *graph.Graph, ends bool) *group {
	count := store.Scope(path.Join("/", train.AccumulatedGradientsScope)).VariableWithValue("#batches", int32(0)).SetTrainable(false)
	size := graph.AddScalar(count.NodeValue(g), 1)
	count.SetNodeValue(size)
	if ends {
		count.SetNodeValue(graph.ZerosLike(size))
	}
	return &group{store: store, size: size, ends: ends}
}

// add adds the gradients to the sums of earlier batches. At the end of the group it returns the
// means and resets the sums.
func (b *group) add(variables []*model.Variable, gradients []*graph.Node) []*graph.Node {
	mean := make([]*graph.Node, len(gradients))
	for i, gradient := range gradients {
		mean[i] = b.addTo(b.sum(variables[i], gradient.DType()), gradient)
	}
	return mean
}

// addWeight is like add, for the weight of an objective's gradients; nil if it has none.
func (b *group) addWeight(objective int, weight *graph.Node) *graph.Node {
	if weight == nil {
		return nil
	}
	zero := shapes.CastAsDType(0, weight.DType())
	scope := b.store.Scope(path.Join("/", train.AccumulatedGradientsScope))
	return b.addTo(scope.VariableWithValue(fmt.Sprintf("#weight%d", objective), zero).SetTrainable(false), weight)
}

// addTo adds a batch's value to a sum.
func (b *group) addTo(sum *model.Variable, value *graph.Node) (mean *graph.Node) {
	value = graph.Add(sum.NodeValue(value), value)
	if !b.ends {
		sum.SetNodeValue(value)
		return nil
	}
	sum.SetNodeValue(graph.ZerosLike(value))
	return graph.Div(value, graph.ConvertDType(b.size, value.DType()))
}

func (b *group) sum(v *model.Variable, dtype dtypes.DType) *model.Variable {
	scope := b.store.Scope(path.Join("/", train.AccumulatedGradientsScope, v.Scope()))
	shape := v.Shape().Clone()
	shape.DType = dtype
	return scope.WithInitializer(initializer.Zero).VariableWithShape(v.Name(), shape).SetTrainable(false)
}

// clamped limits the size of each element of the gradients.
func clamped(gradients []*graph.Node, limit float64) []*graph.Node {
	return xslices.Map(gradients, func(gradient *graph.Node) *graph.Node { return graph.ClipScalar(gradient, -limit, limit) })
}

// clipped scales the gradients so that their global norm is at most the limit. It computes the norm
// in at least single precision. If these are a rank's parts, whole returns the sum over
// all ranks; else it returns its argument.
func clipped(gradients []*graph.Node, limit float64, whole func(*graph.Node) *graph.Node) []*graph.Node {
	dtype := dtypes.Float32
	for _, gradient := range gradients {
		if gradient.DType() == dtypes.Float64 {
			dtype = dtypes.Float64
		}
	}
	squares := graph.ScalarZero(gradients[0].Graph(), dtype)
	for _, gradient := range gradients {
		squares = graph.Add(squares, graph.ReduceAllSum(graph.Square(graph.ConvertDType(gradient, dtype))))
	}
	norm := graph.Sqrt(whole(squares))
	factor := graph.MinScalar(graph.Div(graph.Scalar(norm.Graph(), dtype, limit), graph.AddScalar(norm, 1e-6)), 1)
	return xslices.Map(gradients, func(gradient *graph.Node) *graph.Node {
		return graph.Mul(gradient, graph.ConvertDType(factor, gradient.DType()))
	})
}

// compressed returns the gradients in the type in which they travel, if they do.
func (s *Step) compressed(gradients []*graph.Node) []*graph.Node {
	if !s.Compress || s.World.Size() == 1 {
		return gradients
	}
	return convert(gradients, dtypes.BFloat16)
}

// ShownGradient is a gradient that a program returns.
type ShownGradient struct {
	Name string // Of the variable.
	Size int
}

// showGradients makes the gradients of all objectives, one after the other in one row, results of
// the program: averaged over the ranks but not yet clipped.
func (s *draft) showGradients(scopes []*model.Scope, gradients []*graph.Node) {
	s.Shown = nil
	for _, scope := range scopes {
		for _, v := range Trained(scope, s.graph) {
			s.Shown = append(s.Shown, ShownGradient{Name: v.Path()})
		}
	}
	flat := make([]*graph.Node, len(gradients))
	for i, gradient := range gradients {
		s.Shown[i].Size = gradient.Shape().Size()
		flat[i] = graph.ConvertDType(graph.Reshape(gradient, gradient.Shape().Size()), dtypes.Float32)
	}
	if s.shownHere = flat[0]; len(flat) > 1 {
		s.shownHere = graph.Concatenate(flat, 0)
	}
}
