package logger

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gonbatch/internal/rundir"
)

// ParamsFile keeps hyper-parameters in a JSON file: the name of the training and, in the order in
// which they were first logged, the name and the value of each, as text. A value that is logged
// again replaces the one in the file, even one from an earlier process. If "optimizer" changes,
// what an earlier process has logged below it, such as "optimizer.beta1", is no longer there.
// ParamsFile ignores everything except hyper-parameters.
type ParamsFile struct {
	record
	path   string
	params rundir.Params
	own    map[string]bool // What this process has logged.
	first  func(param string) bool
}

var _ Logger = (*ParamsFile)(nil)

// NewParamsFile reads the file at path, if it exists. The first call of Params creates it, and its
// folder.
func NewParamsFile(path string, all ...Option) (*ParamsFile, error) {
	params, err := rundir.ReadParamsFile(path)
	if err != nil {
		return nil, fmt.Errorf("logger: %w", err)
	}
	o := newOptions(all)
	params.Training = o.training
	return &ParamsFile{path: path, params: params, own: map[string]bool{}, first: o.first}, nil
}

// Params writes the file. The names of a call are sorted, with those of First before the others.
func (l *ParamsFile) Params(params map[string]any) error {
	return l.do("record hyper-parameters in "+l.path, func() error { return l.add(params) })
}

func (l *ParamsFile) add(params map[string]any) error {
	names := slices.Sorted(maps.Keys(params))
	for _, name := range names {
		l.own[name] = true
	}
	others := slices.DeleteFunc(slices.Clone(names), l.first)
	names = slices.DeleteFunc(names, func(name string) bool { return !l.first(name) })
	for _, name := range append(names, others...) {
		if l.params.Set(name, paramText(params[name])) {
			l.dropBelow(name)
		}
	}
	if err := os.MkdirAll(filepath.Dir(l.path), 0o777); err != nil {
		return err
	}
	return rundir.WriteJSON(l.path, l.params)
}

// dropBelow removes what an earlier process has logged below a name whose value has changed.
func (l *ParamsFile) dropBelow(name string) {
	l.params.Params = slices.DeleteFunc(l.params.Params, func(p rundir.Param) bool {
		return strings.HasPrefix(p.Name, name+".") && !l.own[p.Name]
	})
}

// Scalars does nothing.
func (l *ParamsFile) Scalars(int64, map[string]float64) error {
	return l.do(l.path, func() error { return nil })
}

// Close ends the record.
func (l *ParamsFile) Close() error { return l.end(l.path, func() error { return nil }) }
