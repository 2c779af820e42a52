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
	p := findPlace(os.Getenv)
	if p.dir == "" {
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
	p := findPlace(os.Getenv)
	if p.dir == "" {
		return
	}
	var failed error
	for _, name := range slices.Sorted(maps.Keys(v)) {
		err := p.save(name, v[name])
		if err == nil {
			err = p.remember(name)
		}
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%%keep %s: %w", name, err))
		}
	}
	if failed != nil {
		p.report(failed)
	}
}

// place is where this process keeps values.
type place struct {
	// dir has the values; empty is nowhere.
	dir string
	// after has them, in a job, as the cell leaves them: a later cell's replace those in dir, and a
	// later run may begin after this cell.
	after string
	// errors is the file for an error; empty is none.
	errors string
	// rank is this process's: each rank of a job has its own values.
	rank int
}

// findPlace finds the place of this process: a session's folder, or a job's run directory.
func findPlace(getenv func(string) string) place {
	p := place{dir: getenv(rundir.EnvKeepDir), errors: getenv(rundir.EnvKeepErrors)}
	if env := rundir.ReadEnv(getenv); p.dir == "" && env.InRun() {
		p.dir, p.after = env.Dir.Kept(), env.Dir.KeptAfter(env.Cell)
	}
	if ranks, err := cluster.Detect(getenv); err == nil { // Nonsense ends programs that use ranks.
		p.rank = ranks.Rank
	}
	return p
}

// report writes an error to the place's file. Without one it ends the program.
func (p place) report(err error) {
	if p.errors == "" || os.WriteFile(p.errors, []byte(err.Error()), 0o600) != nil {
		panic(err)
	}
}

// remember keeps a value as the cell leaves it.
func (p place) remember(name string) error {
	if p.after == "" {
		return nil
	}
	if err := os.MkdirAll(p.after, 0o700); err != nil {
		return err
	}
	file, name := rundir.KeptValue(p.dir, name, p.rank), rundir.KeptValue(p.after, name, p.rank)
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if os.Link(file, name) == nil {
		return nil
	}
	text, err := os.ReadFile(file) // A file system without links.
	if err != nil {
		return err
	}
	return os.WriteFile(name, text, 0o600)
}

func (p place) load(name string, pointer any) error {
	f, err := os.Open(rundir.KeptValue(p.dir, name, p.rank))
	if errors.Is(err, fs.ErrNotExist) {
		f, err = os.Open(rundir.KeptValue(p.dir, name, 0))
	}
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
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return err
	}
	u, err := newUpdate(rundir.KeptValue(p.dir, name, p.rank))
	if err != nil {
		return err
	}
	if err := encode(u, name, reflect.ValueOf(pointer).Elem()); err != nil {
		return errors.Join(err, u.Discard())
	}
	return u.Commit()
}
