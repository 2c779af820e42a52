package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"gonbatch/checkpoint/folder"
)

// Info is a checkpoint in the result of List.
type Info = folder.Info

// List returns the checkpoints in a folder, the newest step first, without reading their tensors.
// It may be called while others save.
func List(path string) ([]Info, error) { return folder.List(path) }

// Mode says which of two metrics is better.
type Mode string

// Min means that the smallest value of a metric is best, as for a loss; Max means the largest, as
// for an accuracy.
const (
	Min Mode = "min"
	Max Mode = "max"
)

// Options says which checkpoints to keep.
type Options struct {
	// Keep is the number of newest checkpoints to keep. 0 means 2, and math.MaxInt keeps
	// all.
	Keep int
	// Metric is the metric whose best checkpoint is also kept. If it is empty, no best checkpoint
	// is kept.
	Metric string
	// Mode says which value is best. Empty means Min.
	Mode Mode
	// Check may refuse a snapshot with an error before anything is written. Nil accepts all.
	Check func(*Snapshot) error
	// Report receives warnings about files that couldn't be removed. Nil discards them.
	Report func(message string)
}

const defaultKeep = 2

func (o Options) validate() (Options, error) {
	if o.Keep == 0 {
		o.Keep = defaultKeep
	}
	if o.Mode == "" {
		o.Mode = Min
	}
	if o.Check == nil {
		o.Check = func(*Snapshot) error { return nil }
	}
	if o.Report == nil {
		o.Report = func(string) {}
	}
	switch {
	case o.Keep < 1:
		return o, fmt.Errorf("keep %d checkpoints: it must be at least 1", o.Keep)
	case o.Mode != Min && o.Mode != Max:
		return o, fmt.Errorf("mode %q: it must be min or max", o.Mode)
	}
	return o, nil
}

// Dir is a folder of checkpoints to which this process saves. Its methods may be called
// concurrently.
type Dir struct {
	path    string
	options Options
	// mu lets one save or read at a time.
	mu sync.Mutex
	// damaged are the checkpoints whose files turned out not to be what was written.
	damaged map[string]bool
}

// Open opens a folder of checkpoints, and creates it if it doesn't exist. Only one process at a
// time may save to it.
func Open(path string, o Options) (*Dir, error) {
	o, err := o.validate()
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %s: %w", path, err)
	}
	if path == "" {
		return nil, errors.New("checkpoint: no folder to save to")
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	if err := os.MkdirAll(path, 0o777); err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	return &Dir{path: path, options: o, damaged: map[string]bool{}}, nil
}

// Path returns the path of the folder.
func (d *Dir) Path() string { return d.path }

// Latest reads the newest valid checkpoint. For each newer one that is damaged, it calls report
// with the name and the problem. If there is no checkpoint, it returns nil and no error. If there
// are some but none is valid, or if one was written by a newer version of this package, it returns
// an error.
func (d *Dir) Latest(report func(message string)) (*Snapshot, error) {
	return d.first(report, func(all []Info) []Info { return all })
}

// Best is like Latest, but reads the checkpoint with the best value of the metric.
func (d *Dir) Best(report func(message string)) (*Snapshot, error) {
	if d.options.Metric == "" {
		return nil, fmt.Errorf("checkpoint: %s: no metric says which is best: set Options.Metric", d.path)
	}
	return d.first(report, d.ranked)
}

// SetAside moves all checkpoints to a new folder inside this one, so that another training run can
// start here. It returns the new folder's path, or "" if there are no checkpoints.
func (d *Dir) SetAside() (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return folder.SetAside(d.path)
}

// first reads the first undamaged checkpoint of those that choose returns. If a checkpoint vanishes
// meanwhile, it was removed in favor of a newer one: then first looks again.
func (d *Dir) first(report func(string), choose func([]Info) []Info) (*Snapshot, error) {
	if report == nil {
		report = d.options.Report
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for range attempts {
		all, err := List(d.path)
		if err != nil {
			return nil, err
		}
		s, vanished, err := d.firstOf(choose(all), report)
		if s != nil || err != nil || !vanished {
			return s, err
		}
	}
	return nil, fmt.Errorf("checkpoint: %s: checkpoints vanish while they are read, %d times: is another process removing them?", d.path, attempts)
}

const attempts = 10

func (d *Dir) firstOf(all []Info, report func(string)) (_ *Snapshot, vanished bool, _ error) {
	var errs []error
	for _, info := range all {
		s, err := Read(info.Path)
		if err == nil {
			return s, false, nil
		}
		if errors.Is(err, folder.ErrNewer) {
			return nil, false, err
		}
		if _, gone := os.Lstat(info.Path); errors.Is(gone, fs.ErrNotExist) {
			vanished = true
			continue
		}
		report(fmt.Sprintf("%v: passed over", err))
		if !errors.Is(err, folder.ErrForeign) {
			d.damaged[info.Path] = true
			errs = append(errs, err)
		}
	}
	if len(errs) == 0 || vanished {
		return nil, vanished, nil
	}
	return nil, false, fmt.Errorf("checkpoint: none of the %d in %s is valid; move them away to start over: %w", len(errs), d.path, errors.Join(errs...))
}
