package logger

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"gonbatch/internal/rundir"
)

// ParamsFile keeps hyper-parameters in a JSON file: the name of the training and, in the order in
// which they were first logged, the name and the value of each, as text. A value that is logged
// again replaces the one in the file, also that of an earlier process. ParamsFile ignores
// everything except hyper-parameters.
type ParamsFile struct {
	scalarsOnly
	mu     sync.Mutex
	path   string
	params rundir.Params
	closed bool
}

var _ Logger = (*ParamsFile)(nil)

// NewParamsFile reads the file at path, if it exists. The first call of Params creates it, and its
// folder.
func NewParamsFile(path string, all ...Option) (*ParamsFile, error) {
	params, err := rundir.ReadParamsFile(path)
	if err != nil {
		return nil, fmt.Errorf("logger: %w", err)
	}
	params.Training = newOptions(all).training
	return &ParamsFile{path: path, params: params}, nil
}

// Params writes the file, with the names of a call sorted.
func (l *ParamsFile) Params(params map[string]any) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return fmt.Errorf("logger: record hyper-parameters in %s: %w", l.path, ErrClosed)
	}
	for _, name := range slices.Sorted(maps.Keys(params)) {
		l.params.Set(name, paramText(params[name]))
	}
	err := os.MkdirAll(filepath.Dir(l.path), 0o777)
	if err == nil {
		err = rundir.WriteJSON(l.path, l.params)
	}
	if err != nil {
		return fmt.Errorf("logger: record hyper-parameters: %w", err)
	}
	return nil
}

// Scalars does nothing.
func (l *ParamsFile) Scalars(int64, map[string]float64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return fmt.Errorf("logger: %s: %w", l.path, ErrClosed)
	}
	return nil
}

// Close ends the record.
func (l *ParamsFile) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	return nil
}
