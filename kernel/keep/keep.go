package keep

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"reflect"
	"slices"

	"gonbatch/internal/cluster"
	"gonbatch/internal/rundir"
)

// Vars maps the names of the variables to keep to pointers to them.
type Vars map[string]any

// Load gives each variable the value that an earlier program kept. If the value no longer fits,
// because the variable has another type now, it is dropped with a warning.
func (v Vars) Load() {
	p, err := findPlace(os.Getenv)
	if err != nil {
		p.report(fmt.Errorf("%%keep: %w", err))
		return
	}
	if p.from == "" {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(v)) {
		if err := p.load(name, v[name]); err != nil {
			fmt.Fprintf(os.Stderr, "%%keep %s: %v: it has its initial value again\n", name, err)
		}
	}
}

// Save writes the variables' values for later programs. A value that can't be encoded is an error
// that names the variable.
func (v Vars) Save() {
	p, failed := findPlace(os.Getenv)
	if p.to == "" {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(v)) {
		if err := p.save(name, v[name]); err != nil {
			failed = errors.Join(failed, fmt.Errorf("%%keep %s: %w", name, err))
		}
	}
	if failed != nil {
		p.report(failed)
	}
}

// place is where this process keeps values.
type place struct {
	// from has the values of earlier cells, and to those that this one leaves; empty is nowhere. In
	// a session they are the same. In a job each cell has a folder of its own, so that a cell that
	// is started again, and a later run that begins after it, finds the values as they were before.
	from, to string
	// errors is the file for an error; empty is none.
	errors string
	// rank is this process's, of size: each rank of a job has its own values.
	rank, size int
}

// findPlace finds the place of this process: a session's folder, or a job's run directory.
func findPlace(getenv func(string) string) (p place, err error) {
	dir := getenv(rundir.EnvKeepDir)
	p = place{from: dir, to: dir, errors: getenv(rundir.EnvKeepErrors), size: 1}
	if env := rundir.ReadEnv(getenv); dir == "" && env.InRun() {
		p.to = env.Dir.KeptAfter(env.Cell)
		p.from, err = env.Dir.KeptBefore(env.Cell)
	}
	if ranks, err := cluster.Detect(getenv); err == nil { // Nonsense ends programs that use ranks.
		p.rank, p.size = ranks.Rank, ranks.Size
	}
	return p, err
}

// report writes an error to the place's file. Without one it ends the program.
func (p place) report(err error) {
	if p.errors == "" || os.WriteFile(p.errors, []byte(err.Error()), 0o600) != nil {
		panic(err)
	}
}

// file is the file with the value that this rank has loaded: its own, or rank 0's if it had none.
func (p place) file(name string) string {
	own := rundir.KeptValue(p.from, name, p.rank)
	if _, err := os.Stat(own); errors.Is(err, fs.ErrNotExist) {
		return rundir.KeptValue(p.from, name, 0)
	}
	return own
}

func (p place) load(name string, pointer any) error {
	f, err := os.Open(p.file(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // it was only read
	target := reflect.ValueOf(pointer).Elem()
	value, err := decode(f, target.Type())
	if err != nil {
		return fmt.Errorf("the kept value does not fit %s: %w", target.Type(), err)
	}
	target.Set(value)
	return nil
}

func (p place) save(name string, pointer any) error {
	if err := os.MkdirAll(p.to, 0o700); err != nil {
		return err
	}
	old := ""
	if p.from != "" {
		old = p.file(name)
	}
	u, err := newUpdate(rundir.KeptValue(p.to, name, p.rank), old)
	if err != nil {
		return err
	}
	if err := encode(u, name, reflect.ValueOf(pointer).Elem()); err != nil {
		return errors.Join(err, u.Discard())
	}
	return errors.Join(u.Commit(), p.forget(name))
}

// forget has rank 0 remove the values of ranks that this program doesn't have: from now on they
// have rank 0's.
func (p place) forget(name string) error {
	if p.rank != 0 {
		return nil
	}
	for rank := max(p.size, 1); ; rank++ {
		err := os.Remove(rundir.KeptValue(p.to, name, rank))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
