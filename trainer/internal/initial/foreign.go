package initial

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"gonbatch/checkpoint"
	"gonbatch/trainer/internal/step"
)

// Target is trainer.Target.
type Target struct {
	// Variable is its path, such as "/logits/dense/weights". If it is empty, the tensor is left
	// out.
	Variable string
	// Layout converts the tensor. Nil leaves it as it is.
	Layout Layout
}

// Layout is trainer.Layout.
type Layout func(*tensors.Tensor) (*tensors.Tensor, error)

// Targets says what the tensors of a file become, by their names in the file.
type Targets func(file map[string]*tensors.Tensor) (map[string]Target, error)

// readForeign reads a file, and returns its weights by variable, and what each was in the file.
func readForeign(path string, become Targets) (s *checkpoint.Snapshot, was map[string]string, err error) {
	if !strings.HasSuffix(path, ".safetensors") {
		return nil, nil, fmt.Errorf("%s is not a .safetensors file", path)
	}
	if s, err = readWeightsFile(path); err != nil {
		return nil, nil, err
	}
	file := map[string]*tensors.Tensor{}
	for variable, t := range s.Tensors {
		file[strings.TrimPrefix(variable, "/")] = t
	}
	all, err := become(file)
	if err == nil {
		was, err = rename(s, file, all)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, was, nil
}

// rename replaces the snapshot's tensors by those that the file's become. It returns what each was
// in the file: "fc.weight, (Float32)[10, 84]".
func rename(s *checkpoint.Snapshot, file map[string]*tensors.Tensor, targets map[string]Target) (was map[string]string, err error) {
	s.Tensors, s.Weights, was = map[string]*tensors.Tensor{}, map[string]bool{}, map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(targets)) {
		to := targets[name]
		described := fmt.Sprintf("%s, %s", name, file[name].Shape())
		if err := step.CheckScope(to.Variable); err != nil {
			return nil, fmt.Errorf("%s: %w", described, err)
		}
		if other, ok := was[to.Variable]; ok {
			return nil, fmt.Errorf("%s and %s: both become %s", other, described, to.Variable)
		}
		value := file[name]
		if to.Layout != nil {
			if value, err = to.Layout(value); err != nil {
				return nil, fmt.Errorf("%s, for %s: %w", name, to.Variable, err)
			}
		}
		s.Tensors[to.Variable], s.Weights[to.Variable], was[to.Variable] = value, true, described
	}
	return was, nil
}

// explain adds to an error about the model's variables what they were in the file.
func (w *Weights) explain(err error, store *model.Store) error {
	var mismatch *checkpoint.MismatchError
	if len(w.was) == 0 || !errors.As(err, &mismatch) {
		return err
	}
	var b strings.Builder
	for _, d := range mismatch.Different {
		fmt.Fprintf(&b, "\n  %s becomes %s, but %s is %s: a Layout must convert it", w.was[d.Path], d.Checkpoint, d.Path, d.Model)
	}
	for _, path := range mismatch.Unused {
		fmt.Fprintf(&b, "\n  %s: the model has no variable %s", w.was[path], path)
	}
	for _, path := range mismatch.Missing {
		fmt.Fprintf(&b, "\n  %s, %s: no tensor of the file becomes this variable", path, store.GetVariable(path).Shape())
	}
	return errors.New("the file and the model differ:" + b.String())
}

// Explain does the same for an error of GoMLX, which builds no graph with a variable of another
// shape.
func (all All) Explain(err error) error {
	for _, w := range all {
		for path, was := range w.was {
			if strings.Contains(err.Error(), fmt.Sprintf("variable %q", path)) {
				return fmt.Errorf("%w: the first shape is from %s (%s): a Layout must convert it", err, was, w.Name)
			}
		}
	}
	return err
}
