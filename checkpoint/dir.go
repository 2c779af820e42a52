package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"sync"

	"gonbatch/checkpoint/folder"
)

// Info is a checkpoint as List finds it.
type Info = folder.Info

// List finds the checkpoints in a folder, the newest step first, without reading their tensors. It
// may be called while others save.
func List(path string) ([]Info, error) { return folder.List(path) }

// Mode says which of two metrics is better.
type Mode string

// A metric is best where it is smallest, as a loss is, or largest, as an accuracy is.
const (
	Min Mode = "min"
	Max Mode = "max"
)

// KeepAll as Options.Keep removes nothing.
const KeepAll = math.MaxInt

// Options say which checkpoints are kept.
type Options struct {
	// Keep is the number of newest checkpoints that are kept; 0 stands for 2.
	Keep int
	// Metric is the one whose best checkpoint is kept as well; empty for none.
	Metric string
	// Mode says what is best; empty stands for Min.
	Mode Mode
	// Check refuses a snapshot by an error, before anything is written. Nil takes all.
	Check func(*Snapshot) error
	// Report gets warnings: what couldn't be removed. Nil drops them.
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

// Dir is a folder of checkpoints to which this process saves. Its methods may be called from
// several goroutines.
type Dir struct {
	path    string
	options Options
	// mu lets one save or read at a time.
	mu sync.Mutex
	// damaged are checkpoints whose files turned out to be others than were written.
	damaged map[string]bool
	// weights are the names of those in the newest checkpoint; nil until the first save has looked.
	weights []string
}

// Open makes the folder if it isn't there. One process at a time may save to it.
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

// Path is the folder.
func (d *Dir) Path() string { return d.path }

// Latest reads the newest checkpoint that is whole. For each newer one that isn't, report is called
// with its name and what is wrong with it. Without any checkpoint it returns nil and no error; if
// there are some but none is whole, that is an error, and so is a checkpoint of a newer version of
// this package.
func (d *Dir) Latest(report func(message string)) (*Snapshot, error) {
	return d.first(report, func(all []Info) []Info { return all })
}

// Best reads the whole checkpoint with the best value of the metric, otherwise like Latest.
func (d *Dir) Best(report func(message string)) (*Snapshot, error) {
	if d.options.Metric == "" {
		return nil, fmt.Errorf("checkpoint: %s: no metric says which is best: set Options.Metric", d.path)
	}
	return d.first(report, d.ranked)
}

// SetAside moves all checkpoints into a new folder in this one, whose path it returns, so that
// another training can begin here; empty if there are none.
func (d *Dir) SetAside() (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.weights = nil
	return folder.SetAside(d.path)
}

// first reads the first checkpoint that is whole of those that are chosen. What vanishes meanwhile
// was removed for a newer one: then it looks again.
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
		if folder.IsNewer(err) {
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
	return nil, false, fmt.Errorf("checkpoint: none of the %d in %s is whole, move them away to start again: %w", len(errs), d.path, errors.Join(errs...))
}
