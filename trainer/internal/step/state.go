package step

import (
	"maps"
	"slices"

	"github.com/gomlx/gomlx/core/graph"

	"gonbatch/checkpoint"
)

// The names of variables don't show which belong to the model: an optimizer may keep its state in
// any scope, and a model may have a variable with the name of a state. So the step notes who has
// created them.

// notesState notes the variables of the model that the graph uses without training them, before the
// optimizers build their part of it. Afterwards, made notes the variables that these have created.
func (s *Step) notesState(g *graph.Graph) (made func()) {
	s.fixed = map[string]bool{}
	known := map[string]bool{}
	for v := range s.Store.IterVariables() {
		path := v.Path()
		known[path] = true
		if !v.Trainable && v.InUseByGraph(g) && !checkpoint.OnlyTraining(path) {
			s.fixed[path] = true
		}
	}
	return func() {
		for v := range s.Store.IterVariables() {
			if !known[v.Path()] {
				s.state[v.Path()] = true
			}
		}
	}
}

// IsWeight is the checkpoint.Owner of the model's variables. It knows those that the optimizers
// have created, also before the training run was resumed, and those that the model uses without
// training them.
func (s *Step) IsWeight(path string) (weight, known bool) {
	return s.fixed[path], s.fixed[path] || s.state[path]
}

// State lists the optimizers' variables.
func (s *Step) State() []string { return slices.Sorted(maps.Keys(s.state)) }

// Resume takes the optimizers' variables of a checkpoint: they may never ask for these, because the
// training run may have ended. If the ranks share the update, the snapshot has this rank's parts of
// them afterwards.
func (s *Step) Resume(snapshot *checkpoint.Snapshot, state []string) error {
	for _, path := range state {
		s.state[path] = true
	}
	return s.parts.cut(snapshot, s.state)
}
