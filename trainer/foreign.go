package trainer

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/trainer/internal/initial"
)

// Target is the variable that a tensor of another library's file becomes: Variable is its path,
// such as "/logits/dense/weights". If it is empty, the tensor is left out. Layout converts the
// tensor; nil leaves it as it is.
type Target = initial.Target

// Layout converts a tensor of another library to the layout that the variable has here. It must not
// change its argument. Nil leaves the tensor as it is.
type Layout = initial.Layout

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

// initFromForeign returns the option for a file of another library.
func initFromForeign(name, path string, scopes []string, become initial.Targets) Option {
	return func(o *chosen) {
		o.initial = append(o.initial, initial.FromForeign(name, path, scopes, become))
	}
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
