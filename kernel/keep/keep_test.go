package keep

import (
	"container/list"
	"math/big"
	"math/rand"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/quick"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

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

// overlap is a struct with a slice that may begin where the struct begins.
type overlap struct {
	All  [2]struct{ Kids []int }
	View []struct{ Kids []int }
}

func TestKeep(t *testing.T) {
	shared := &overlap{}
	shared.All[0].Kids = []int{1}
	shared.View = shared.All[:]
	self := &layer{Name: "a"}
	self.Next = self
	loop := []any{nil}
	loop[0] = loop
	tests := []struct {
		name string
		// before is a pointer to the saved value, after to the initial value in a later program.
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
		{name: "pointer to 0", before: &struct{ Dropout *float64 }{new(0.0)}, err: "x.Dropout points to 0, and would be nil when it is loaded: keep the value itself"},
		{name: "pointer to a pointer to false", before: new(new(new(false))), err: "x points to false, and would be nil"},
		{name: "pointer to an empty slice", before: &[]struct{ List *[]int }{{&[]int{}}}, err: "x[0].List points to [], and would be nil"},
		{name: "pointer to no time", before: &struct{ At *time.Time }{&time.Time{}}, err: "x.At points to the zero value of time.Time"},
		{name: "pointer to an empty struct", before: &struct{ Layer *layer }{&layer{}}, after: &struct{ Layer *layer }{}},
		{name: "pointers to 0 in a list", before: &[]*int{new(0), new(1)}, after: new([]*int)},
		{name: "cycle", before: &self, err: "x.Next contains a cycle"},
		{name: "cycle of a list", before: &loop, err: "x[0] contains a cycle"},
		{name: "nil in a list", before: &[]*layer{{Name: "a"}, nil}, err: "x[1] is a nil *keep.layer, and gob encodes nil pointers only in the fields of structs: leave it out"},
		{name: "nil in a map", before: &map[string]*layer{"a": nil}, err: "x[a] is a nil *keep.layer"},
		{name: "nil in an array", before: &[2]*layer{{Name: "a"}}, err: "x[1] is a nil *keep.layer"},
		{name: "nil behind an interface", before: &[]any{(*int)(nil)}, err: "x[0] is a nil *int"},
		{name: "pointer to nil in a list", before: &[]**layer{new((*layer)(nil))}, err: "x[0] is a nil *keep.layer"},
		{name: "nil that would encode itself", before: &[]*big.Int{big.NewInt(5), nil}, err: "x[1] is a nil *big.Int"},
		{name: "nil time", before: &[]struct{ At map[string]*time.Time }{{map[string]*time.Time{"a": nil}}}, err: "x[0].At[a] is a nil *time.Time"},
		{name: "array of nil", before: &struct{ Layers [2]*layer }{}, err: "x.Layers[0] is a nil *keep.layer"},
		{name: "nil in a field of an element", before: &[]layer{{Name: "a"}, {}}, after: new([]layer)},
		{name: "list that shares memory with an array around it", before: shared, after: new(overlap)},
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
			Vars{"x": tt.after}.Load(nil)
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
	Vars{"x": &after}.Load(nil)
	if after != 5 {
		t.Errorf("%d, want 5", after)
	}
}

// everything has all kinds of values that gob encodes, with pointers where gob tends to leave
// something out.
type everything struct {
	Int   *int
	Text  **string
	List  []*float64
	Maps  map[string]*bool
	Deep  *[]struct{ Small *uint8 }
	Array [2]*int16
	Inner struct{ Bytes *[]byte }
	Plain map[int8][]string
}

// TestRandomValues: a value is either loaded as it was, or refused. A list or map without elements
// may become nil.
func TestRandomValues(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	t.Setenv(rundir.EnvKeepDir, t.TempDir())
	errs := filepath.Join(t.TempDir(), "errors")
	t.Setenv(rundir.EnvKeepErrors, errs)
	same, refused := 0, 0
	for i := range 3000 {
		made, _ := quick.Value(reflect.TypeFor[everything](), random)
		before, after := made.Interface().(everything), everything{}
		thin(reflect.ValueOf(&before).Elem(), random)
		_ = os.Remove(errs)
		Vars{"x": &before}.Save()
		if text, err := os.ReadFile(errs); err == nil {
			if !strings.Contains(string(text), "nil") {
				t.Fatalf("value %d: %s", i, text)
			}
			refused++
			continue
		}
		same++
		Vars{"x": &after}.Load(nil)
		if diff := cmp.Diff(before, after, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("value %d came back as another: %s", i, diff)
		}
	}
	if same < 100 || refused < 100 {
		t.Errorf("%d values came back, %d were refused: too few to say something", same, refused)
	}
}

// thin sets some parts of a value to zero.
func thin(v reflect.Value, random *rand.Rand) {
	if random.Intn(8) == 0 {
		v.SetZero()
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			thin(v.Elem(), random)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			thin(v.Field(i), random)
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			thin(v.Index(i), random)
		}
	}
}

// job creates a run with cells, and returns a function that runs a rank of one of them.
func job(t *testing.T, cells ...string) (rundir.Dir, func(cell string, rank, size int, program func())) {
	t.Helper()
	m := rundir.Manifest{}
	for _, cell := range cells {
		m.Cells = append(m.Cells, rundir.Cell{Name: cell})
	}
	dir := rundir.At(t.TempDir())
	if err := m.Write(dir); err != nil {
		t.Fatal(err)
	}
	t.Setenv(rundir.EnvKeepDir, "")
	t.Setenv(rundir.EnvDir, dir.Path())
	for _, name := range []string{"OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"} {
		t.Setenv(name, "")
	}
	return dir, func(cell string, rank, size int, program func()) {
		t.Setenv(rundir.EnvCell, cell)
		t.Setenv("RANK", strconv.Itoa(rank))
		t.Setenv("WORLD_SIZE", strconv.Itoa(size))
		program()
	}
}

// TestRanks: each rank of a job finds its own value; a rank that the cell before did not have finds
// rank 0's, even after a cell that only rank 0 ran.
func TestRanks(t *testing.T) {
	dir, run := job(t, "all", "main", "again")
	save := func(cell string, size, value int) {
		for rank := range size {
			run(cell, rank, size, func() { x := value + rank; Vars{"x": &x}.Save() })
		}
		if err := rundir.MarkFinished(dir, cell, 1); err != nil {
			t.Fatal(err)
		}
	}
	want := func(cell string, values ...int) {
		t.Helper()
		for rank, want := range values {
			run(cell, rank, len(values), func() {
				x := -1
				if (Vars{"x": &x}).Load(nil); x != want {
					t.Errorf("%s: rank %d has %d, want %d", cell, rank, x, want)
				}
			})
		}
	}
	save("all", 2, 10)
	want("main", 10, 11, 10)
	save("main", 3, 30) // a start with more ranks
	save("main", 1, 20)
	want("again", 20, 20, 20)
}

// TestStarts: values kept by a start that did not finish the cell are ignored.
func TestStarts(t *testing.T) {
	dir, run := job(t, "shell", "first", "plain", "second", "third")
	want := func(cell string, want int) {
		t.Helper()
		run(cell, 0, 1, func() {
			x := -1
			if (Vars{"x": &x}).Load(nil); x != want {
				t.Errorf("%s begins with %d, want %d", cell, x, want)
			}
			x++
			Vars{"x": &x}.Save()
		})
	}
	finish := func(cell string) {
		t.Helper()
		if err := rundir.MarkFinished(dir, cell, 1); err != nil {
			t.Fatal(err)
		}
	}
	finish("shell")
	want("first", -1)
	want("first", -1)
	finish("first")
	finish("plain")
	want("second", 0)
	want("second", 0)
	finish("second")
	want("third", 1)
}

// TestNoKernel: a program outside a session or job keeps nothing, and ends on an error that it
// can't report.
func TestNoKernel(t *testing.T) {
	t.Setenv(rundir.EnvKeepDir, "")
	t.Setenv(rundir.EnvDir, "")
	t.Setenv(rundir.EnvKeepErrors, "")
	f := func() {}
	Vars{"f": &f}.Save()
	t.Setenv(rundir.EnvKeepDir, t.TempDir())
	code := 0
	exit = func(c int) { code = c }
	defer func() { exit = os.Exit }()
	Vars{"f": &f}.Save()
	if code != 1 {
		t.Errorf("exit status %d, want 1", code)
	}
}
