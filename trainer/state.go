package trainer

import (
	"github.com/gomlx/gomlx/core/graph"

	"gonbatch/checkpoint"
)

// The names of variables don't show which belong to the model: an optimizer may keep its state in
// any scope, and a model may have a variable with the name of a state. So the stepper notes who has
// created them.

// notesState notes the variables of the model that the graph uses without training them, before the
// optimizers build their part of it. Afterwards, made notes the variables that these have created.
func (s *stepper) notesState(g *graph.Graph) (made func()) {
	if s.state == nil {
		s.state = map[string]bool{}
	}
	s.fixed = map[string]bool{}
	known := map[string]bool{}
	for v := range s.store.IterVariables() {
		path := v.Path()
		known[path] = true
		if !v.Trainable && v.InUseByGraph(g) && !checkpoint.OnlyTraining(path) {
			s.fixed[path] = true
		}
	}
	return func() {
		for v := range s.store.IterVariables() {
			if !known[v.Path()] {
				s.state[v.Path()] = true
			}
		}
	}
}

// markWeights corrects which of a snapshot's variables are the model's.
func (s *stepper) markWeights(snapshot *checkpoint.Snapshot) {
	for path := range s.state {
		delete(snapshot.Weights, path)
		delete(snapshot.Trainable, path)
	}
	for path := range s.fixed {
		if snapshot.Tensors[path] != nil {
			snapshot.Weights[path] = true
		}
	}
}

// stateIn returns the variables of a checkpoint that are the optimizers'. They may never ask for
// these: the training run may have ended. Older versions did not list them.
func (p position) stateIn(s *checkpoint.Snapshot) map[string]bool {
	state := map[string]bool{}
	for _, path := range p.State {
		state[path] = true
	}
	for path := range s.Tensors {
		if p.State == nil && !s.Weights[path] {
			state[path] = true
		}
	}
	return state
}
