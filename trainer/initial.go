package trainer

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/checkpoint"
	"gonbatch/trainer/internal/step"
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
		i := &initial{name: fmt.Sprintf("InitFrom %s", path), scopes: scopes}
		i.read = func(t *Trainer) (*checkpoint.Snapshot, error) {
			return t.shareInitial(i, func() (*checkpoint.Snapshot, error) { return readWeights(path) })
		}
		o.initial = append(o.initial, i)
	}
}

// InitFromTrainer is like InitFrom, but takes the current weights of another trainer of this
// program. Use it for the second phase of a training run: with another optimizer, other rates or
// other frozen scopes.
func InitFromTrainer(other *Trainer, scopes ...string) Option {
	return func(o *chosen) {
		o.initial = append(o.initial, &initial{name: fmt.Sprintf("InitFromTrainer %s", other.config.Name), scopes: scopes, read: func(*Trainer) (*checkpoint.Snapshot, error) { return other.weights() }})
	}
}

// initial holds weights that initialize a model.
type initial struct {
	name     string
	scopes   []string
	read     func(*Trainer) (*checkpoint.Snapshot, error)
	was      map[string]string    // What each variable was in a file of another library; nil for our own.
	snapshot *checkpoint.Snapshot // Until the model is built and compared with it.
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

// shareInitial reads weights on rank 0 and sends them to the other ranks.
func (t *Trainer) shareInitial(i *initial, read func() (*checkpoint.Snapshot, error)) (s *checkpoint.Snapshot, err error) {
	var from origin
	err = t.world.OnMain(func() (err error) {
		if s, err = read(); err == nil {
			from = origin{Path: s.Path, Tensors: tensorsOf(s)}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if from, err = broadcast(t.world, from); err != nil {
		return nil, err
	}
	if i.was, err = broadcast(t.world, i.was); err != nil {
		return nil, err
	}
	return t.shared(s, from)
}

// readWeights reads the weights of a checkpoint, of the newest one in a folder, or of a file.
func readWeights(path string) (*checkpoint.Snapshot, error) {
	if strings.HasSuffix(path, ".safetensors") {
		return readWeightsFile(path)
	}
	if _, err := os.Stat(filepath.Join(path, checkpoint.WeightsFile)); err != nil {
		all, err := checkpoint.List(path)
		if err != nil {
			return nil, err
		}
		if len(all) == 0 {
			return nil, fmt.Errorf("%s is neither a checkpoint, nor a folder of checkpoints, nor a .safetensors file", path)
		}
		path = all[0].Path
	}
	s, err := checkpoint.Read(path)
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(s.Tensors, func(path string, _ *tensors.Tensor) bool { return !s.Weights[path] })
	return s, nil
}

func readWeightsFile(path string) (s *checkpoint.Snapshot, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	s = &checkpoint.Snapshot{Path: path, Weights: map[string]bool{}}
	if s.Tensors, _, err = checkpoint.ReadTensors(f, info.Size()); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for name := range s.Tensors {
		s.Weights[name] = true
	}
	return s, nil
}

// begin puts the initial weights into the store, before anything is loaded into it.
func (t *Trainer) begin() error {
	for _, i := range t.initial {
		s, err := i.read(t)
		if err == nil {
			err = i.check(s)
		}
		if err == nil {
			err = i.explain(s.RestoreWeights(t.store, i.wants), t.store)
		}
		if err != nil {
			return fmt.Errorf("trainer: %s: %w", i.name, err)
		}
		i.snapshot = s
	}
	return nil
}

// check returns an error if a scope has no weights.
func (i *initial) check(s *checkpoint.Snapshot) error {
	all := slices.Sorted(maps.Keys(s.Weights))
	for _, scope := range i.scopes {
		if err := step.CheckScope(scope); err != nil {
			return err
		}
		if !slices.ContainsFunc(all, func(path string) bool { return step.Under(path, scope) }) {
			return fmt.Errorf("there are no weights under %q, only under %q", scope, topScopes(all))
		}
	}
	if len(all) == 0 {
		return errors.New("there are no weights")
	}
	return nil
}

// wants reports whether a weight must be initialized.
func (i *initial) wants(path string) bool {
	return len(i.scopes) == 0 || slices.ContainsFunc(i.scopes, func(scope string) bool { return step.Under(path, scope) })
}

// checkInitial compares the model, once built, with its initial weights. It does nothing if a
// checkpoint has replaced them.
func (t *Trainer) checkInitial() error {
	for _, i := range t.initial {
		if i.snapshot == nil || t.origin.Found || t.loaded != "" {
			continue
		}
		if err := i.snapshot.CheckWeights(t.store, t.step.IsWeight, i.wants); err != nil {
			return fmt.Errorf("%s: %w", i.name, i.explain(err, t.store))
		}
	}
	return nil
}

// topScopes returns the first elements of paths.
func topScopes(paths []string) (all []string) {
	for _, path := range paths {
		if end := strings.IndexByte(path[1:], '/'); end >= 0 {
			path = path[:end+1]
		}
		all = append(all, path)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
