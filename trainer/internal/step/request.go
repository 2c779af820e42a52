package step

import (
	"fmt"
	"strings"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/model/initializer"
	"github.com/gomlx/gomlx/support/exceptions"

	"gonbatch/internal/layerhooks"
)

// request is a variable for which a model asks.
type request struct {
	path      string
	shape     shapes.Shape
	value     *tensors.Tensor // Its initial value, if the model has it; else its initializer has.
	used      bool            // By the graph. GoMLX's batch normalization asks for more than it uses.
	trainable bool
	kept      bool // By the model, since another build.
}

// ask returns the variables for which a model asks, in the order in which it creates them. To find
// out, it builds the model in a graph and a store of its own, both of which are thrown away.
//
// The store is empty, as it would refuse a variable that has another type there. But a model may
// look for a variable that it doesn't create: then ask adds those that exist, which it also
// returns, and builds again.
func (s *Step) ask(inputs, labels []*graph.Node, f BuildFn) (all []request, given map[string]*model.Variable) {
	like := inputs[0].Graph()
	given = map[string]*model.Variable{}
	for {
		trial := s.newTrial(like, given, s.Precision.types())
		failure := exceptions.Try(func() { trial.build(inputs, labels, f) })
		found := len(given)
		for path := range trial.sought {
			if trial.has(path) {
				continue
			}
			if v := s.Store.GetVariable(path); v != nil {
				given[path] = v
			}
		}
		if len(given) == found && failure == nil {
			all = trial.requests()
		}
		trial.graph.Finalize()
		if len(given) == found {
			if failure != nil {
				panic(failure)
			}
			return all, given
		}
	}
}

// trial is a build of a model that is thrown away. It implements model.Loader, which GoMLX asks for
// each variable that the store doesn't have.
type trial struct {
	graph  *graph.Graph
	store  *model.Store
	sought map[string]bool // The paths of variables that the model has looked for.
}

var _ model.Loader = (*trial)(nil)

// newTrial returns a graph of a precision and a store, with the parameters of those of another
// graph, and with the given variables.
func (s *Step) newTrial(like *graph.Graph, given map[string]*model.Variable, types layerhooks.Precision) *trial {
	t := &trial{graph.NewGraph(s.World.Backend(), "types of variables"), model.NewStore(), map[string]bool{}}
	model.SetStore(t.graph, t.store)
	for path, value := range s.Store.IterParams() {
		t.store.SetParam(path, value)
	}
	for p := range s.Store.IterGraphParams(like) {
		if _, isNode := p.Value.(*graph.Node); !isNode {
			model.SetGraphParam(t.graph, model.JoinPath(p.Scope, p.Key), p.Value)
		}
	}
	layerhooks.AttachPrecision(t.graph, types)
	for path, v := range given {
		shape := v.Shape()
		if s.halves[path] {
			shape = withDType(shape, types.Compute)
		}
		t.store.VariableWithShape(path, shape, initializer.Zero).SetTrainable(v.Trainable)
	}
	t.store.SetLoader(t)
	return t
}

// build builds a model for what has the shapes of these nodes.
func (t *trial) build(inputs, labels []*graph.Node, f BuildFn) {
	f(t.store.RootScope(), t.parameters("input", inputs), t.parameters("label", labels))
}

// LoadVariable implements model.Loader.
func (t *trial) LoadVariable(_ *model.Store, path string) (*tensors.Tensor, bool) {
	t.sought[path] = true
	return nil, false
}

// DeleteVariable implements model.Loader.
func (t *trial) DeleteVariable(*model.Store, string) error { return nil }

// has reports whether the store has a variable.
func (t *trial) has(path string) bool {
	for v := range t.store.IterVariables() {
		if v.Path() == path {
			return true
		}
	}
	return false
}

// requests returns the variables of the store, and those that the graph uses although the store
// doesn't have them: the model has kept them since another build. The state of the random numbers
// is no part of the model.
func (t *trial) requests() (all []request) {
	of := map[string]bool{model.JoinPath("/", model.RNGStateVariableName): true}
	for v := range t.store.IterVariables() {
		if of[v.Path()] {
			continue
		}
		of[v.Path()] = true
		r := request{path: v.Path(), shape: v.Shape(), used: v.InUseByGraph(t.graph), trainable: v.Trainable}
		if v.HasValue() {
			r.value = v.MustValue()
		}
		all = append(all, r)
	}
	for i := range t.graph.NumParameters() {
		node := t.graph.GetParameterByHandle(graph.ParameterHandle(i))
		if path := node.GetParameterName(); strings.HasPrefix(path, "/") && !of[path] {
			all = append(all, request{path: path, shape: node.Shape(), used: true, kept: true})
		}
	}
	return all
}

// parameters returns parameters with the shapes of the nodes, in the precision of the build.
func (t *trial) parameters(name string, like []*graph.Node) []*graph.Node {
	all := make([]*graph.Node, len(like))
	for i, node := range like {
		shape := node.Shape()
		if shape.DType == layerhooks.PrecisionOf(node.Graph()).Compute {
			shape = withDType(shape, layerhooks.PrecisionOf(t.graph).Compute)
		}
		all[i] = graph.Parameter(t.graph, fmt.Sprint(name, i), shape)
	}
	return all
}
