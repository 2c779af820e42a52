package keep

import (
	"container/list"
	"math/big"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"gonbatch/internal/rundir"
)

type layer struct {
	Name    string
	Weights []float32
	Next    *layer
	hidden  int
	Apply   func()
	Any     any
	lock    sync.Mutex //nolint:unused // zero values are no loss
}

func TestKeep(t *testing.T) {
	self := &layer{Name: "a"}
	self.Next = self
	loop := []any{nil}
	loop[0] = loop
	tests := []struct {
		name string
		// before is a pointer to what is saved, after to what a later program's initialiser made.
		before, after any
		err           string
	}{
		{name: "number", before: new(7), after: new(1)},
		{name: "zero over an initial value", before: new(0), after: new(1)},
		{name: "struct", before: &layer{Name: "a", Weights: []float32{1, 2}}, after: &layer{Name: "x", Next: &layer{}}},
		{name: "pointer", before: new(&layer{Name: "a", Next: &layer{Name: "b"}}), after: new((*layer)(nil))},
		{name: "nil pointer", before: new((*layer)(nil)), after: new(&layer{})},
		{name: "map", before: &map[string][]int{"a": {1}}, after: &map[string][]int{"b": nil}},
		{name: "nil map", before: new(map[string]int), after: &map[string]int{"a": 1}},
		{name: "time", before: new(time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)), after: new(time.Time)},
		{name: "big number", before: big.NewInt(1 << 40), after: big.NewInt(1)},
		{name: "known type behind an interface", before: new(any("text")), after: new(any(nil))},
		{name: "nil interface", before: new(any(nil)), after: new(any(1))},

		{name: "function", before: new(func() {}), err: "x is a func, which exists only in its own process"},
		{name: "channel", before: new(make(chan int)), err: "x is a chan"},
		{name: "function in a field", before: &layer{Apply: func() {}}, err: "x.Apply is a func"},
		{name: "field that is not exported", before: &[]layer{{}, {hidden: 1}}, err: "the field x[1].hidden of keep.layer is not exported"},
		{name: "a type that only encodes itself as text", before: &struct{ Pattern *regexp.Regexp }{regexp.MustCompile("x")}, err: "not exported, so gob leaves it out: the type is package regexp's"},
		{name: "set", before: &map[string]struct{}{"a": {}}, after: &map[string]struct{}{"b": {}}},
		{name: "nothing to encode", before: &struct{ Lock sync.Mutex }{}, err: "type sync.Mutex has no exported fields: keep what it is made from, in a variable of another type"},
		{
			name: "field of another package's type that cannot be encoded", before: &struct{ List *list.List }{list.New()},
			err: "the field x.List.root of list.List is not exported, so gob leaves it out: the type is package container/list's: keep what it is made from",
		},
		{name: "field of a type without a name", before: &struct{ a int }{1}, err: "not exported, so gob leaves it out: export it, or give"},
		{name: "cycle", before: &self, err: "x.Next leads back to itself"},
		{name: "cycle of a list", before: &loop, err: "x[0] leads back to itself"},
		{name: "unknown type behind an interface", before: &layer{Any: layer{Name: "b"}}, err: "gob.Register"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			errs := filepath.Join(t.TempDir(), "errors")
			t.Setenv(rundir.EnvKeepDir, dir)
			t.Setenv(rundir.EnvKeepErrors, errs)
			Vars{"x": tt.before}.Save()
			text, _ := os.ReadFile(errs)
			if tt.err != "" {
				if !strings.HasPrefix(string(text), "%keep x: ") || !strings.Contains(string(text), tt.err) {
					t.Errorf("error %q, want %q", text, tt.err)
				}
				return
			}
			if len(text) > 0 {
				t.Fatal(string(text))
			}
			Vars{"x": tt.after}.Load()
			if !reflect.DeepEqual(tt.after, tt.before) {
				t.Errorf("%+v, want %+v", tt.after, tt.before)
			}
		})
	}
}

// TestAnotherType: a value that does not fit leaves the variable as it is.
func TestAnotherType(t *testing.T) {
	t.Setenv(rundir.EnvKeepDir, t.TempDir())
	before, after := "text", 5
	Vars{"x": &before}.Save()
	Vars{"x": &after}.Load()
	if after != 5 {
		t.Errorf("%d, want 5", after)
	}
}

// TestRanks: each rank of a job finds its own value, a rank that was not there before finds rank
// 0's.
func TestRanks(t *testing.T) {
	run := t.TempDir()
	t.Setenv(rundir.EnvKeepDir, "")
	t.Setenv(rundir.EnvDir, run)
	for _, name := range []string{"OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"} {
		t.Setenv(name, "")
	}
	t.Setenv("WORLD_SIZE", "3")
	for i, rank := range []string{"0", "1"} {
		t.Setenv("RANK", rank)
		Vars{"x": &i}.Save()
	}
	for rank, want := range map[string]int{"0": 0, "1": 1, "2": 0, "": 0} {
		t.Setenv("RANK", rank)
		x := -1
		if (Vars{"x": &x}).Load(); x != want {
			t.Errorf("rank %q has %d, want %d", rank, x, want)
		}
	}
	if _, err := os.Stat(filepath.Join(run, "kept", "x.rank-1.gob")); err != nil {
		t.Error(err)
	}
}

// TestKeptAfter: a job's values are also kept as each cell left them.
func TestKeptAfter(t *testing.T) {
	dir := rundir.At(t.TempDir())
	t.Setenv(rundir.EnvKeepDir, "")
	t.Setenv(rundir.EnvDir, dir.Path())
	t.Setenv("WORLD_SIZE", "2")
	for _, rank := range []string{"0", "1"} {
		t.Setenv("RANK", rank)
		for i, cell := range []string{"first", "second", "second"} {
			t.Setenv(rundir.EnvCell, cell)
			Vars{"x": &i}.Save()
		}
	}
	for cell, want := range map[string]int{"first": 0, "second": 2} {
		for _, rank := range []string{"0", "1"} {
			t.Setenv("RANK", rank)
			t.Setenv(rundir.EnvKeepDir, dir.KeptAfter(cell))
			x := -1
			if (Vars{"x": &x}).Load(); x != want {
				t.Errorf("after %s rank %s had %d, want %d", cell, rank, x, want)
			}
		}
	}
}

// TestNoKernel: a program by itself keeps nothing, and an error without anybody to tell ends it.
func TestNoKernel(t *testing.T) {
	t.Setenv(rundir.EnvKeepDir, "")
	t.Setenv(rundir.EnvDir, "")
	t.Setenv(rundir.EnvKeepErrors, "")
	f := func() {}
	Vars{"f": &f}.Save()
	t.Setenv(rundir.EnvKeepDir, t.TempDir())
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	Vars{"f": &f}.Save()
}
