package keep

import (
	"bytes"
	"encoding/gob"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"

	"gonbatch/internal/rundir"
)

const (
	// EnvDir names the folder that has the kept values of a kernel's session. A job's are in its run directory.
	EnvDir = "GONBATCH_KEEP_DIR"
	// EnvErrorFile names the file that says why a value cannot be kept. Unset, that ends the program.
	EnvErrorFile = "GONBATCH_KEEP_ERRORS"
)

// Vars maps the names of the variables to keep to pointers to them.
type Vars map[string]any

// Load gives each variable the value that an earlier program kept. If the value no longer fits,
// because the variable has another type now, it is dropped with a warning.
func (v Vars) Load() {
	dir := folder()
	if dir == "" {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(v)) {
		if err := load(dir, name, v[name]); err != nil {
			fmt.Fprintf(os.Stderr, "%%keep %s: %v: it has its initial value again\n", name, err)
		}
	}
}

// Save writes the variables' values for later programs. A value that can't be encoded is an error
// that names the variable.
func (v Vars) Save() {
	dir := folder()
	if dir == "" {
		return
	}
	var failed error
	for _, name := range slices.Sorted(maps.Keys(v)) {
		err := save(dir, name, v[name])
		if err == nil {
			err = remember(dir, name)
		}
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%%keep %s: %w", name, err))
		}
	}
	if failed != nil {
		report(failed)
	}
}

func report(err error) {
	if file := os.Getenv(EnvErrorFile); file != "" {
		if os.WriteFile(file, []byte(err.Error()), 0o600) == nil {
			return
		}
	}
	panic(err)
}

// folder is where the values are, or "".
func folder() string {
	if dir := os.Getenv(EnvDir); dir != "" {
		return dir
	}
	if run, ok := rundir.FromEnv(os.Getenv); ok {
		return run.Kept()
	}
	return ""
}

// remember keeps, in a job, a value also as the step leaves it: a later step's replaces the first file, and a later run may begin
// behind this step.
func remember(dir, name string) error {
	run, ok := rundir.FromEnv(os.Getenv)
	if !ok || dir != run.Kept() {
		return nil
	}
	after := run.KeptAfter(rundir.StepFromEnv(os.Getenv))
	if err := os.MkdirAll(after, 0o700); err != nil {
		return err
	}
	file, name := fileOf(dir, name, rank()), fileOf(after, name, rank())
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

// fileOf is the file of a variable: each rank of a job has its own.
func fileOf(dir, name, rank string) string {
	if rank == "" || rank == "0" {
		return filepath.Join(dir, name+".gob")
	}
	return filepath.Join(dir, name+".rank-"+rank+".gob")
}

// rank is this process's, as launchers say it; "" is a process by itself.
func rank() string {
	for _, name := range []string{"RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"} {
		if value := os.Getenv(name); value != "" {
			return filepath.Base(value)
		}
	}
	return ""
}

func load(dir, name string, pointer any) error {
	text, err := os.ReadFile(fileOf(dir, name, rank()))
	if errors.Is(err, fs.ErrNotExist) {
		text, err = os.ReadFile(fileOf(dir, name, ""))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	// gob leaves fields alone that are zero: it gets a new value, not the one of the initialiser.
	target := reflect.ValueOf(pointer).Elem()
	box := newBox(target.Type())
	if err := gob.NewDecoder(bytes.NewReader(text)).DecodeValue(box); err != nil {
		return fmt.Errorf("the kept value does not fit %s: %w", target.Type(), err)
	}
	target.Set(box.Elem().Field(0))
	return nil
}

func save(dir, name string, pointer any) error {
	value := reflect.ValueOf(pointer).Elem()
	if err := check(value, name, nil); err != nil {
		return err
	}
	box := newBox(value.Type())
	box.Elem().Field(0).Set(value)
	var text bytes.Buffer
	if err := gob.NewEncoder(&text).EncodeValue(box); err != nil {
		return gobError(err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	file := fileOf(dir, name, rank())
	if err := os.WriteFile(file+".new", text.Bytes(), 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// newBox makes a pointer to a struct with one field of the type: gob takes nil only within a struct.
func newBox(t reflect.Type) reflect.Value {
	return reflect.New(reflect.StructOf([]reflect.StructField{{Name: "Value", Type: t}}))
}
