package step

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train"
	"github.com/gomlx/gomlx/ml/train/metric"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"gonbatch/checkpoint"
	"gonbatch/distributed"
)

// parts is what the strategy "zero1" adds to a training run on several ranks: each rank updates its
// part of each weight, and has only this part of the optimizer's state. Checkpoints have the whole
// state, as those of other strategies do.
type parts struct {
	world *distributed.World
	// whole has the shapes that the state of which this rank has a part would have without the
	// strategy, by path.
	whole map[string]shapes.Shape
}

// Zero1 is the name of the strategy with which the ranks share the update.
const Zero1 = "zero1"

// update lets an optimizer change this rank's parts of the variables.
func (p *parts) update(store *model.Store, g *graph.Graph, scope *model.Scope, variables []*model.Variable, apply func()) {
	if model.GetParamOr(scope, optimizer.ParamClipNaN, false) {
		panic(fmt.Errorf("trainer: strategy: %q and the hyper-parameter %q: a rank sees only its part of a gradient, and can't drop the whole: turn one of them off", Zero1, optimizer.ParamClipNaN))
	}
	before := stateOf(store, variables)
	ofModel := map[*model.Variable]bool{} // Variables that the model uses, but that are named like state.
	for state := range before {
		ofModel[state] = state.InUseByGraph(g)
	}
	defer func() {
		failure := recover()
		for state := range before {
			if _, mine := p.whole[state.Path()]; failure != nil && !mine && strings.Contains(fmt.Sprint(failure), state.Path()) {
				failure = foreign(state) // It has another shape than this rank's part.
			}
		}
		if failure != nil {
			panic(failure)
		}
	}()
	p.world.UpdateParts(store, g, variables, apply)
	after := stateOf(store, variables)
	for _, state := range slices.SortedFunc(maps.Keys(after), func(a, b *model.Variable) int { return strings.Compare(a.Path(), b.Path()) }) {
		if ofModel[state] || !state.InUseByGraph(g) {
			continue
		}
		if _, mine := p.whole[state.Path()]; before[state] != nil && !mine {
			panic(foreign(state))
		}
		shape := after[state].Shape().Clone()
		if !slices.Equal(state.Shape().Dimensions, []int{p.world.PartLength(shape.Size())}) {
			continue
		}
		shape.DType = state.DType()
		p.whole[state.Path()] = shape
		p.world.KeepOwn(state)
	}
}

// foreign is the error of state that the store has from another training run.
func foreign(state *model.Variable) error {
	return fmt.Errorf("trainer: strategy: %q: the store already has %s, of another training run: use another store (InitFromTrainer copies only the weights)", Zero1, state.Path())
}

// stateOf lists an optimizer's variables for these weights, with the weights.
func stateOf(store *model.Store, of []*model.Variable) map[*model.Variable]*model.Variable {
	weights := map[string]*model.Variable{}
	for v := range store.IterVariables() {
		if _, isState := withoutSuffix(v.Path()); v.Trainable || !isState {
			weights[v.Path()] = v
		}
	}
	all := map[*model.Variable]*model.Variable{}
	for v := range store.IterVariables() {
		if weight, ok := weightOf(v.Path(), weights); ok && slices.Contains(of, weights[weight]) {
			all[v] = weights[weight]
		}
	}
	return all
}

// withoutSuffix removes the suffix with which an optimizer names what it keeps for a weight.
func withoutSuffix(state string) (path string, ok bool) {
	for _, suffix := range []string{"_1st_moment", "_2nd_moment", "_momentum"} {
		if path, ok := strings.CutSuffix(state, suffix); ok {
			return path, true
		}
	}
	return state, false
}

// weightOf returns the path of the weight to which a variable of an optimizer belongs. The variable
// has the path of the weight in a scope of the optimizer, with a suffix:
// "/AdamOptimizer/dense/weights_1st_moment".
func weightOf[T any](state string, weights map[string]T) (weight string, ok bool) {
	_, isWeight := weights[state]
	path, isState := withoutSuffix(state)
	if isWeight || !isState || hasOtherState(state) {
		return "", false
	}
	for candidate := range weights {
		if len(candidate) < len(path) && len(candidate) > len(weight) && strings.HasSuffix(path, candidate) {
			weight = candidate
		}
	}
	return weight, weight != ""
}

// hasOtherState reports whether a variable is in a scope with the names of weights that isn't an
// optimizer's.
func hasOtherState(variable string) bool {
	return Under(variable, AverageScope) || Under(variable, path.Join("/", train.AccumulatedGradientsScope)) || Under(variable, path.Join("/", metric.Scope))
}

// cut replaces the optimizer's state in a checkpoint by this rank's parts of it.
func (p *parts) cut(s *checkpoint.Snapshot, state map[string]bool) error {
	if p == nil {
		return nil
	}
	for name, value := range s.Tensors {
		weight, ok := weightOf(name, s.Weights)
		if !ok || !state[name] || !slices.Equal(s.Tensors[weight].Shape().Dimensions, value.Shape().Dimensions) {
			continue
		}
		part, err := p.world.CutPart(value)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		p.whole[name] = value.Shape()
		s.Tensors[name] = part
	}
	return nil
}

// KeepParts makes the ranks keep their parts of the state that Resume has taken, before there is a
// program: Fit may be called again, and then shares the variables that it did not know.
func (s *Step) KeepParts() {
	if s.parts == nil {
		return
	}
	for v := range s.Store.IterVariables() {
		if _, mine := s.parts.whole[v.Path()]; mine {
			s.World.KeepOwn(v)
		}
	}
}

// WholeState returns, on rank 0, the state of which the ranks have parts: of the store or, before
// the first update of a training run that was resumed, of what was restored. It is collective.
func (s *Step) WholeState(restored *checkpoint.Snapshot) (map[string]*tensors.Tensor, error) {
	if s.parts == nil {
		return nil, nil
	}
	have, err := s.ownParts(restored)
	if err != nil {
		return nil, err
	}
	all := map[string]*tensors.Tensor{}
	for _, name := range slices.Sorted(maps.Keys(s.parts.whole)) {
		if have[name] == nil {
			return nil, fmt.Errorf("%s: this rank's part of it is missing", name)
		}
		if all[name], err = s.World.JoinParts(have[name], s.parts.whole[name]); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return all, nil
}

// ownParts returns this rank's parts.
func (s *Step) ownParts(restored *checkpoint.Snapshot) (map[string]*tensors.Tensor, error) {
	all := map[string]*tensors.Tensor{}
	if restored != nil {
		maps.Copy(all, restored.Tensors)
	}
	for v := range s.Store.IterVariables() {
		if _, mine := s.parts.whole[v.Path()]; !mine || !v.HasValue() {
			continue
		}
		value, err := v.Value()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", v.Path(), err)
		}
		all[v.Path()] = value
	}
	return all, nil
}
