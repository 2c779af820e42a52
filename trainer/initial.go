package trainer

import (
	"maps"

	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/checkpoint"
	"gonbatch/distributed"
	"gonbatch/trainer/internal/initial"
)

// InitFrom initializes the model with the weights of another training run: those under the scopes,
// such as "/body", or all if there are no scopes. path is a checkpoint (step-N), a folder of
// checkpoints, whose newest is read, or a .safetensors file, in which the variable "/body/weights"
// is called "body/weights"; for other files, see InitFromNames and InitFromTorch. A training run
// that resumes takes the weights of its own checkpoint instead.
//
// New fails if there are no weights under a scope. The model must have the same variables under
// each scope, with the same types and shapes: Fit, Validate and Test fail if it doesn't.
func InitFrom(path string, scopes ...string) Option {
	return func(o *chosen) {
		o.initial = append(o.initial, initial.From("InitFrom "+path, path, scopes))
	}
}

// InitFromTrainer is like InitFrom, but takes the current weights of another trainer of this
// program. Use it for the second phase of a training run: with another optimizer, other rates or
// other frozen scopes.
func InitFromTrainer(other *Trainer, scopes ...string) Option {
	return func(o *chosen) {
		o.initial = append(o.initial, &initial.Weights{Name: "InitFromTrainer " + other.config.Name, Scopes: scopes,
			Read: func(*distributed.World) (*checkpoint.Snapshot, error) { return other.weights() }})
	}
}

// weights returns this trainer's weights, without the state of its optimizers.
func (t *Trainer) weights() (*checkpoint.Snapshot, error) {
	s, err := checkpoint.Take(t.store, t.step.IsWeight)
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(s.Tensors, func(path string, _ *tensors.Tensor) bool { return !s.Weights[path] })
	s.Path = "the trainer " + t.config.Name
	return s, nil
}

// checkInitial compares the model, once built, with its initial weights. It does nothing if a
// checkpoint has replaced them.
func (t *Trainer) checkInitial() error {
	if t.origin.Found || t.loaded != "" {
		return nil
	}
	return t.initial.Compare(t.store, t.step.IsWeight)
}
