package trainer

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

// Target is the variable that a tensor of another library's file becomes.
type Target struct {
	// Variable is its path, such as "/logits/dense/weights". If it is empty, the tensor is left
	// out.
	Variable string
	// Layout converts the tensor. Nil leaves it as it is.
	Layout Layout
}

// InitFromNames is like InitFrom, for a .safetensors file of another library: names has the
// variable for each of the file's tensors.
//
//	trainer.InitFromNames("pytorch.safetensors", map[string]trainer.Target{
//		"fc.weight": {Variable: "/logits/dense/weights", Layout: trainer.TorchLinear},
//		"fc.bias":   {Variable: "/logits/dense/biases"},
//		"aux":       {}, // Leave out aux.weight and aux.bias.
//	}, "/logits")
//
// A name without a variable leaves out the tensor, or all tensors that begin with the name and a
// dot; the name "" leaves out all that have no other name. Other tensors of the file must have
// names, and other names must be in the file, or New fails and lists both with their shapes.
func InitFromNames(path string, names map[string]Target, scopes ...string) Option {
	return initFromForeign("InitFromNames "+path, path, scopes, func(file map[string]*tensors.Tensor) (map[string]Target, error) {
		return targetsOf(file, names)
	})
}

// targets says what the tensors of a file become, by their names in the file.
type targets func(file map[string]*tensors.Tensor) (map[string]Target, error)

// initFromForeign returns the option for a file of another library.
func initFromForeign(name, path string, scopes []string, become targets) Option {
	return func(o *chosen) {
		i := &initial{name: name, scopes: scopes}
		i.read = func(t *Trainer) (*checkpoint.Snapshot, error) {
			return t.shareInitial(i, func() (s *checkpoint.Snapshot, err error) {
				s, i.was, err = readForeign(path, become)
				return s, err
			})
		}
		o.initial = append(o.initial, i)
	}
}

// readForeign reads a file, and returns its weights by variable, and what each was in the file.
func readForeign(path string, become targets) (s *checkpoint.Snapshot, was map[string]string, err error) {
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

// targetsOf returns the target of each tensor that is not left out.
func targetsOf(file map[string]*tensors.Tensor, names map[string]Target) (map[string]Target, error) {
	found, used := map[string]Target{}, map[string]bool{"": true}
	var missing, unexpected []string
	for name := range file {
		key, ok := longestKey(name, func(key string) bool {
			to, ok := names[key]
			return ok && (key == name || to.Variable == "")
		})
		if !ok {
			unexpected = append(unexpected, name)
		} else if to := names[key]; to.Variable != "" {
			found[name] = to
		}
		used[key] = true
	}
	for name, to := range names {
		if !used[name] {
			missing = append(missing, strings.TrimSuffix(name+" for "+to.Variable, " for "))
		}
	}
	return found, unmatched(file, missing, unexpected)
}

// longestKey returns the longest key that is known among a name, its beginnings before a dot, and
// "".
func longestKey(name string, known func(key string) bool) (key string, ok bool) {
	for key = name; key != "" && !known(key); {
		key = key[:max(0, strings.LastIndexByte(key, '.'))]
	}
	return key, known(key)
}

// unmatched returns an error that lists the names that are not in the file, and the tensors of the
// file that have none.
func unmatched(file map[string]*tensors.Tensor, missing, unexpected []string) error {
	if len(missing)+len(unexpected) == 0 {
		return nil
	}
	var b strings.Builder
	slices.Sort(missing)
	slices.Sort(unexpected)
	if len(missing) > 0 {
		fmt.Fprintf(&b, "\n  not in the file:\n    %s", strings.Join(missing, "\n    "))
	}
	if len(unexpected) > 0 {
		b.WriteString("\n  in the file, without a name:")
		for _, name := range unexpected {
			fmt.Fprintf(&b, "\n    %s, %s", name, file[name].Shape())
		}
		b.WriteString("\n  name them, or leave them out with an empty name")
	}
	return errors.New("the tensors and the names differ:" + b.String())
}

// explain adds to an error about the model's variables what they were in the file.
func (i *initial) explain(err error, store *model.Store) error {
	var mismatch *checkpoint.MismatchError
	if len(i.was) == 0 || !errors.As(err, &mismatch) {
		return err
	}
	var b strings.Builder
	for _, d := range mismatch.Different {
		fmt.Fprintf(&b, "\n  %s becomes %s, but %s is %s: a Layout must convert it", i.was[d.Path], d.Checkpoint, d.Path, d.Model)
	}
	for _, path := range mismatch.Unused {
		fmt.Fprintf(&b, "\n  %s: the model has no variable %s", i.was[path], path)
	}
	for _, path := range mismatch.Missing {
		fmt.Fprintf(&b, "\n  %s, %s: no tensor of the file becomes this variable", path, store.GetVariable(path).Shape())
	}
	return errors.New("the file and the model differ:" + b.String())
}

// explainBuild does the same for an error of GoMLX, which builds no graph with a variable of
// another shape.
func (t *Trainer) explainBuild(err error) error {
	for _, i := range t.initial {
		for path, was := range i.was {
			if strings.Contains(err.Error(), fmt.Sprintf("variable %q", path)) {
				return fmt.Errorf("%w: the first shape is from %s (%s): a Layout must convert it", err, was, i.name)
			}
		}
	}
	return err
}
