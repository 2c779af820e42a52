package rundir

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
)

// Params are the hyper-parameters of a training run, in the order in which it logged them.
type Params struct {
	Training string  `json:"training"`
	Params   []Param `json:"params"`
}

// Param is a hyper-parameter, with its value as text.
type Param struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// ReadParams returns the hyper-parameters of the run's training runs, sorted by their files; none
// before the first has begun.
func ReadParams(d Dir) (all []Params, err error) {
	paths, err := d.below(d.Params(), func(path string) string {
		if filepath.Ext(path) == ".json" {
			return path
		}
		return ""
	})
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		p, err := ReadParamsFile(path)
		if err != nil {
			return nil, err
		}
		if p.Training != "" { // Else it is another program's file.
			all = append(all, p)
		}
	}
	return all, nil
}

// ReadParamsFile reads the file of a training run; none if it doesn't exist.
func ReadParamsFile(path string) (p Params, err error) {
	err = ReadJSON(path, &p)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return p, fmt.Errorf("hyper-parameters: %w", err)
	}
	return p, nil
}

// Set changes a value, or adds it at the end. It reports whether the value is another than before.
func (p *Params) Set(name, value string) (changed bool) {
	i := slices.IndexFunc(p.Params, func(other Param) bool { return other.Name == name })
	if i < 0 {
		p.Params = append(p.Params, Param{name, value})
		return true
	}
	changed = p.Params[i].Value != value
	p.Params[i].Value = value
	return changed
}
