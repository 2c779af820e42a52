package trainer

import (
	"errors"
	"fmt"
	"strings"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/dtypes/bfloat16"
	"github.com/gomlx/compute/dtypes/float16"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/core/tensors/dtensor"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/model/initializer"

	"gonbatch/internal/dtype"
	"gonbatch/internal/plural"
)

// In mixed precision the store has the weights in float32, and everything outside of the model sees
// them so: optimizers, checkpoints, averages, other ranks. Layers of GoMLX ask for variables of the
// type of their input, which is half precision. So while the model is built, these variables have
// the type for which it asks, and their values in the graph are converted ones. The gradients pass
// through the conversion, and are those of the weights in float32.

// modelGraph builds the model, or a task's step, in the graph of its inputs.
type modelGraph func(scope *model.Scope, inputs, labels []*graph.Node) []*graph.Node

// build builds a model in the precision of the training run.
func (s *stepper) build(scope *model.Scope, inputs, labels []*graph.Node, f modelGraph) []*graph.Node {
	types := s.precision.types()
	if len(inputs) == 0 {
		return f(scope, inputs, labels)
	}
	g := inputs[0].Graph()
	dtype.Attach(g, types)
	if !types.Mixed() {
		return f(scope, inputs, labels)
	}
	var casts []*cast
	defer func() {
		for _, c := range casts {
			c.putBack()
		}
	}()
	asked := s.ask(inputs, labels, f)
	for _, r := range asked.narrow {
		if c := s.newCast(g, r); c != nil {
			casts = append(casts, c)
			c.narrow()
		}
	}
	outputs := f(scope, inputs, labels)
	for _, c := range casts {
		c.widen(g)
	}
	if s.store.IsTraining(g) {
		s.sayTypes(asked)
	}
	return outputs
}

// predictions builds a model whose inputs have the type in which it computes. Its results have at
// least single precision.
func (s *stepper) predictions(scope *model.Scope, inputs []*graph.Node, f modelFn) []*graph.Node {
	return s.precision.outputs(s.build(scope, inputs, nil, func(scope *model.Scope, inputs, _ []*graph.Node) []*graph.Node { return f(scope, inputs) }))
}

// request is a variable for which a model asks.
type request struct {
	path  string
	shape shapes.Shape
	value *tensors.Tensor // Its initial value, if the model has it; else its initializer has.
	used  bool            // By the graph. GoMLX's batch normalization asks for more than it uses.
}

// requests are the variables for which a model asks.
type requests struct {
	narrow []request // Those in the type in which it computes.
	wide   int       // The number of trainable ones in others.
}

// ask returns the variables for which a model asks. To find out, it builds the model in a graph and
// a store of its own, both of which are thrown away.
func (s *stepper) ask(inputs, labels []*graph.Node, f modelGraph) (all requests) {
	defer s.explainEmpty()
	like := inputs[0].Graph()
	g := graph.NewGraph(s.world.Backend(), "types of variables")
	defer g.Finalize()
	store := model.NewStore()
	model.SetStore(g, store)
	for path, value := range s.store.IterParams() {
		store.SetParam(path, value)
	}
	for p := range s.store.IterGraphParams(like) {
		if _, isNode := p.Value.(*graph.Node); !isNode {
			model.SetGraphParam(g, model.JoinPath(p.Scope, p.Key), p.Value)
		}
	}
	dtype.Attach(g, s.precision.types())
	f(store.RootScope(), parameters(g, "input", inputs), parameters(g, "label", labels))
	for v := range store.IterVariables() {
		switch {
		case v.DType() == s.precision.dtype():
			r := request{path: v.Path(), shape: v.Shape(), used: v.InUseByGraph(g)}
			if v.HasValue() {
				r.value = v.MustValue()
			}
			all.narrow = append(all.narrow, r)
		case v.Trainable && v.DType().IsFloat() && v.InUseByGraph(g):
			all.wide++
		}
	}
	return all
}

// explainEmpty explains why a model may fail where another precision doesn't make it.
func (s *stepper) explainEmpty() {
	failure := recover()
	if failure == nil {
		return
	}
	if strings.Contains(fmt.Sprint(failure), " nil") { // Go's error for a pointer, or GoMLX's for a variable.
		panic(fmt.Errorf("precision: %q: the trainer first builds the model in an empty store, to see the types of its variables; there it fails, perhaps because it looks for one by GetVariable that it hasn't made: %v", s.precision, failure))
	}
	panic(failure)
}

// parameters returns parameters of a graph with the shapes of the nodes.
func parameters(g *graph.Graph, name string, like []*graph.Node) []*graph.Node {
	all := make([]*graph.Node, len(like))
	for i, node := range like {
		all[i] = graph.Parameter(g, fmt.Sprint(name, i), node.Shape())
	}
	return all
}

// sayTypes prints, once, that a model computes in single precision although the configuration says
// otherwise.
func (s *stepper) sayTypes(asked requests) {
	if len(asked.narrow) == 0 && asked.wide > 0 && !s.saidTypes {
		s.printf("precision %s: the model asks for %s in types other than %s, so it doesn't compute in it: convert what it makes of integer inputs to trainer.ComputeDType\n",
			s.precision, plural.Of(asked.wide, "weight"), s.precision.dtype())
	}
	s.saidTypes = true
}

// cast is a variable of the store for which a model asks in half precision, while the model is
// built in a graph.
type cast struct {
	variable       *model.Variable
	dtype          dtypes.DType // In which the model asks for it.
	wide, narrowed *graph.Node  // Its value in the graph; nil if the model doesn't use it.

	isNarrow bool
	value    *tensors.Tensor // Of the variable.
	spread   *dtensor.Tensor // The same, if it is on several devices.
}

// newCast returns nil if the model can't have the variable, because it has another shape: then
// GoMLX says so. A variable that doesn't exist yet is created; its layer will initialize it.
func (s *stepper) newCast(g *graph.Graph, r request) *cast {
	v := s.store.GetVariable(r.path) // A checkpoint's, perhaps.
	if v == nil {
		v = s.newMaster(r)
	}
	if v.DType() == r.shape.DType {
		panic(fmt.Errorf("precision: %q keeps weights in Float32, but %s already is %s: train it with \"bf16-true\", or convert the weights with which it begins", s.precision, r.path, v.Shape()))
	}
	if v.DType() != dtypes.Float32 || !v.Shape().EqualDimensions(r.shape) {
		return nil
	}
	c := &cast{variable: v, dtype: r.shape.DType}
	if r.used {
		c.wide = v.NodeValue(g)
		c.narrowed = graph.ConvertDType(c.wide, c.dtype)
		v.SetNodeValue(c.narrowed)
	}
	if !v.HasValue() {
		return c
	}
	if s.world.Devices() > 1 {
		c.spread, _ = v.DistributedValue() // It fails before the first program for several devices.
	}
	if c.spread == nil {
		c.value = v.MustValue()
	}
	return c
}

// newMaster creates a variable in single precision.
func (s *stepper) newMaster(r request) *model.Variable {
	if r.value == nil {
		return s.store.VariableWithShape(r.path, withDType(r.shape, dtypes.Float32), initializer.Zero)
	}
	value, err := widenedTensor(r.value)
	if err == nil {
		var v *model.Variable
		if v, err = s.store.CreateVariable(r.path, value); err == nil {
			return v
		}
	}
	panic(fmt.Errorf("trainer: create %s: %w", r.path, err))
}

// narrow gives the variable the type for which the model asks.
func (c *cast) narrow() {
	c.isNarrow = true
	setDType(c.variable, c.dtype)
}

// putBack gives the variable its own type and value again.
func (c *cast) putBack() {
	if !c.isNarrow {
		return
	}
	c.isNarrow = false
	switch {
	case c.spread != nil:
		mustDo(c.variable.SetDistributedValue(c.spread))
	case c.value != nil:
		mustDo(c.variable.SetValuePreservingOld(c.value))
	default:
		setDType(c.variable, dtypes.Float32)
	}
}

// widen gives the variable its own type, value, and value in the graph again. What the model has
// changed in the graph, such as a moving average, it converts.
func (c *cast) widen(g *graph.Graph) {
	c.putBack()
	if c.wide == nil {
		return
	}
	now := c.wide
	if value := c.variable.NodeValue(g); value != c.narrowed {
		now = graph.ConvertDType(value, dtypes.Float32)
	}
	c.variable.SetNodeValue(now)
}

// setDType changes the type of a variable, and leaves it without a value. GoMLX has no function for
// it, but a variable has the shape of the last value that it was given.
func setDType(v *model.Variable, dtype dtypes.DType) {
	mustDo(v.SetValuePreservingOld(tensors.FromShape(withDType(v.Shape(), dtype))))
	mustDo(v.Reset())
}

func mustDo(err error) {
	if err != nil {
		panic(fmt.Errorf("trainer: change the type of a variable: %w", err))
	}
}

func withDType(shape shapes.Shape, dtype dtypes.DType) shapes.Shape {
	shape = shape.Clone()
	shape.DType = dtype
	return shape
}

// widenedTensor returns a tensor of half precision in single precision.
func widenedTensor(narrow *tensors.Tensor) (*tensors.Tensor, error) {
	wide := tensors.FromShape(withDType(narrow.Shape(), dtypes.Float32))
	if wide.Shape().IsZeroSize() {
		return wide, nil
	}
	var writeErr error
	err := narrow.ConstFlatData(func(from any) {
		writeErr = wide.MutableFlatData(func(to any) { widenInto(to.([]float32), from) })
	})
	return wide, errors.Join(err, writeErr)
}

func widenInto(to []float32, from any) {
	switch from := from.(type) {
	case []bfloat16.BFloat16:
		for i, value := range from {
			to[i] = value.Float32()
		}
	case []float16.Float16:
		for i, value := range from {
			to[i] = value.Float32()
		}
	}
}
