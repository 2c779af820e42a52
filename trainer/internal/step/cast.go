package step

import (
	"fmt"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/compute/support/xslices"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/core/tensors/dtensor"
	"github.com/gomlx/gomlx/ml/model"

	"gonbatch/checkpoint"
	"gonbatch/internal/layerhooks"
	"gonbatch/internal/plural"
)

// In mixed precision the store has the weights in float32, and everything outside of the model sees
// them so: optimizers, checkpoints, averages, other ranks. Layers of GoMLX ask for variables of the
// type of their input, which is half precision. So while the model is built, these variables have
// the type for which it asks, and their values in the graph are converted ones. The gradients pass
// through the conversion, and are those of the weights in float32.

// build builds a model in the precision of the training run.
func (s *draft) build(inputs, labels []*graph.Node, f BuildFn) []*graph.Node {
	outputs := s.buildAs(inputs, labels, f)
	if len(outputs) > 0 {
		if err := checkpoint.MisplacedIn(s.Store, outputs[0].Graph()); err != nil {
			panic(fmt.Errorf("trainer: %w", err))
		}
	}
	return outputs
}

func (s *draft) buildAs(inputs, labels []*graph.Node, f BuildFn) []*graph.Node {
	types, scope, g := s.Precision.types(), s.Store.RootScope(), s.graph
	layerhooks.AttachPrecision(g, types)
	if !types.Mixed() {
		return f(scope, inputs, labels)
	}
	var casts []*cast
	defer func() {
		for _, c := range casts {
			c.putBack()
		}
	}()
	s.changedHere = map[string]*graph.Node{}
	asked, given := s.ask(inputs, labels, f)
	for _, r := range asked {
		if c := s.prepare(g, r); c != nil {
			casts = append(casts, c)
			c.narrow()
		}
	}
	outputs := f(scope, inputs, labels)
	var terms *termBuilder
	changeTerms(g, func(term *graph.Node) *graph.Node {
		if terms == nil {
			terms = s.newTermBuilder(casts, inputs, labels, f, given)
		}
		return terms.build(term)
	})
	for _, c := range casts {
		if value := c.widen(g); value != nil {
			s.changedHere[c.variable.Path()] = value
		}
	}
	if s.Store.IsTraining(g) {
		s.sayTypes(asked)
	}
	return outputs
}

// predictionsOf builds the model of inputs that have the type in which it computes. Its results
// have at least single precision.
func (s *draft) predictionsOf(inputs []*graph.Node) []*graph.Node {
	f := func(scope *model.Scope, inputs, _ []*graph.Node) []*graph.Node { return s.Model(scope, inputs) }
	return s.Precision.outputs(s.build(inputs, nil, f))
}

// sayTypes prints, once, that a model computes in single precision although the configuration says
// otherwise.
func (s *Step) sayTypes(asked []request) {
	narrow, wide := 0, 0
	for _, r := range asked {
		switch {
		case r.shape.DType == s.Precision.dtype():
			narrow++
		case r.trainable && r.shape.DType.IsFloat() && r.used:
			wide++
		}
	}
	if s.once("types") && narrow == 0 && wide > 0 {
		s.Printf("precision %s: the model asks for %s in types other than %s, so it doesn't compute in it: convert what it makes of integer inputs to trainer.ComputeDType\n",
			s.Precision, plural.Of(wide, "weight"), s.Precision.dtype())
	}
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

// prepare makes the store have the variable for which the model will ask, and g the one of this
// store: the model may have kept another one of that name. It returns nil if the variable needs no
// cast.
func (s *Step) prepare(g *graph.Graph, r request) *cast {
	v := s.Store.GetVariable(r.path) // A checkpoint's, perhaps.
	if v == nil && r.kept {
		return nil // It is of another store.
	}
	if v == nil {
		v = s.newMaster(r)
	}
	if r.shape.DType == s.Precision.dtype() {
		return s.newCast(g, v, r)
	}
	if r.used {
		v.NodeValue(g)
	}
	return nil
}

// newCast returns nil if the model can't have the variable, because it has another shape: then
// GoMLX says so.
func (s *Step) newCast(g *graph.Graph, v *model.Variable, r request) *cast {
	if v.DType() == r.shape.DType {
		panic(fmt.Errorf("precision: %q keeps weights in Float32, but %s already is %s: train it with \"bf16-true\", or convert the weights with which it begins", s.Precision, r.path, v.Shape()))
	}
	if v.DType() != dtypes.Float32 || !v.Shape().EqualDimensions(r.shape) {
		return nil
	}
	if s.halves == nil {
		s.halves = map[string]bool{}
	}
	s.halves[r.path] = true
	c := &cast{variable: v, dtype: r.shape.DType}
	if r.used {
		c.wide = v.NodeValue(g)
		c.narrowed = graph.ConvertDType(c.wide, c.dtype)
		v.SetNodeValue(c.narrowed)
	}
	if !v.HasValue() {
		return c
	}
	if s.World.Devices() > 1 {
		c.spread, _ = v.DistributedValue() // It fails before the first program for several devices.
	}
	if c.spread == nil {
		c.value = v.MustValue()
	}
	return c
}

// newMaster creates a variable, in single precision if the model asks for it in half. Its layer
// will give it an initializer when it asks for it again.
func (s *Step) newMaster(r request) *model.Variable {
	shape, value, narrow := r.shape, r.value, r.shape.DType == s.Precision.dtype()
	if narrow {
		shape = withDType(shape, dtypes.Float32)
	}
	if value == nil {
		return s.Store.VariableWithShape(r.path, shape, func(*graph.Graph, shapes.Shape) *graph.Node { panic(s.onlyOnce(r)) })
	}
	var err error
	if narrow {
		value, err = widenedTensor(value)
	}
	if err == nil {
		var v *model.Variable
		if v, err = s.Store.CreateVariable(r.path, value); err == nil {
			return v
		}
	}
	panic(fmt.Errorf("trainer: create %s: %w", r.path, err))
}

// onlyOnce is the error that a model didn't ask for a variable again.
func (s *Step) onlyOnce(r request) error {
	return fmt.Errorf("precision %s: the model asked for the variable %s when it was built first, but not when it was built again: "+
		"it is built several times, so its function must ask for the same variables each time, and not keep them", s.Precision, r.path)
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
// changed in the graph, such as a moving average, it converts. If that is a weight, widen returns
// it as the model uses it, and adds only the change: where there is none, no digit is lost.
func (c *cast) widen(g *graph.Graph) (changed *graph.Node) {
	c.putBack()
	if c.wide == nil {
		return nil
	}
	value := c.variable.NodeValue(g)
	switch {
	case value == c.narrowed:
		c.variable.SetNodeValue(c.wide)
	case c.variable.Trainable:
		change := graph.Sub(graph.ConvertDType(value, dtypes.Float32), graph.ConvertDType(c.narrowed, dtypes.Float32))
		c.variable.SetNodeValue(graph.Add(c.wide, change))
		changed = value
	default:
		c.variable.SetNodeValue(graph.ConvertDType(value, dtypes.Float32))
	}
	return changed
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
	shape := withDType(narrow.Shape(), dtypes.Float32)
	if shape.IsZeroSize() {
		return tensors.FromShape(shape), nil
	}
	values, err := Numbers(narrow)
	if err != nil {
		return nil, err
	}
	wide := xslices.Map(values, func(x float64) float32 { return float32(x) })
	return tensors.FromFlatDataAndDimensions(wide, shape.Dimensions...), nil
}
