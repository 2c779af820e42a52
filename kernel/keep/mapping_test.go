package keep

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"gonbatch/internal/rundir"
)

// mapAll makes slices of all sizes mapped during a test.
func mapAll(t *testing.T, least uint64) {
	before := large
	large = least
	t.Cleanup(func() { large, program.mappings = before, nil })
}

// TestMapped gives slices of several types a random life over many programs: some change them in
// place, some replace, cut or extend them, and some leave them alone.
func TestMapped(t *testing.T) {
	t.Run("bytes", testMapped[byte])
	t.Run("int16", testMapped[int16])
	t.Run("float32", testMapped[float32])
	t.Run("float64", testMapped[float64])
}

// row has methods, as a named type of a notebook may.
type row[T byte | int16 | float32 | float64] []T

func (r row[T]) Sum() (sum T) {
	for _, x := range r {
		sum += x
	}
	return sum
}

func testMapped[T byte | int16 | float32 | float64](t *testing.T) {
	mapAll(t, 1)
	dir, errs := t.TempDir(), filepath.Join(t.TempDir(), "errors")
	t.Setenv(rundir.EnvKeepDir, dir)
	t.Setenv(rundir.EnvKeepErrors, errs)
	random := rand.New(rand.NewPCG(uint64(reflect.TypeFor[T]().Size()), 2))
	fresh := func() row[T] {
		list := make(row[T], random.IntN(9000))
		for i := range list {
			list[i] = T(random.IntN(100))
		}
		return list
	}
	want := []row[T]{fresh(), fresh()}
	alone := fresh()
	(Vars{"rows": &want, "alone": &alone}).Save()
	for i := range 200 {
		var rows []row[T]
		var one row[T]
		vars := Vars{"rows": &rows, "alone": &one}
		vars.Load(nil)
		if !reflect.DeepEqual(rows, want) || !slices.Equal(one, alone) {
			t.Fatalf("program %d loaded other values than the last one saved", i)
		}
		info, err := os.Stat(rundir.KeptValue(dir, "alone", 0))
		if err != nil {
			t.Fatal(err)
		}
		changed := live(random, fresh, &one)
		if random.IntN(2) == 0 {
			live(random, fresh, &rows[random.IntN(len(rows))])
		}
		want, alone = []row[T]{slices.Clone(rows[0]), slices.Clone(rows[1])}, slices.Clone(one)
		vars.Save()
		if now, err := os.Stat(rundir.KeptValue(dir, "alone", 0)); err != nil || !changed && !os.SameFile(info, now) {
			t.Fatalf("program %d wrote a slice that it had not changed: %v", i, err)
		}
		program.mappings = nil
	}
	if text, err := os.ReadFile(errs); err == nil {
		t.Error(string(text))
	}
}

// live does what a program may do with a slice, and reports whether it may have changed it.
func live[T byte | int16 | float32 | float64](random *rand.Rand, fresh func() row[T], x *row[T]) bool {
	switch n := len(*x); random.IntN(7) {
	case 0:
		_ = x.Sum()
	case 1:
		*x = fresh()
		return true
	case 2:
		*x = append(*x, 1, 2, 3)
		return true
	case 3:
		*x = (*x)[random.IntN(n+1):]
		return true
	case 4:
		*x = (*x)[:random.IntN(n+1)]
		return true
	case 5:
		if n > 0 {
			(*x)[random.IntN(n)]++
			return true
		}
	}
	return false
}

// TestUntouched: one changed byte marks its page and no other.
func TestUntouched(t *testing.T) {
	mapAll(t, 1<<20)
	f, err := os.Open("/proc/self/pagemap")
	if err != nil {
		t.Log("the kernel doesn't say which pages were changed:", err)
		return
	}
	_ = f.Close() // It was only opened.
	t.Setenv(rundir.EnvKeepDir, t.TempDir())
	list := make([]byte, 3<<20)
	vars := Vars{"x": &list}
	vars.Save()
	vars.Load(nil)
	if len(program.mappings) != 1 {
		t.Fatalf("%d mappings, want 1", len(program.mappings))
	}
	m, page := program.mappings[0], os.Getpagesize()
	untouched := func(first, end int) bool { return isUntouched(list[first:end], m.file, m.offset+int64(first)) }
	read := byte(0)
	for _, x := range list {
		read |= x
	}
	if read != 0 || !untouched(0, len(list)) {
		t.Error("reading counts as a change")
	}
	list[1<<20] = 1
	for _, tt := range []struct {
		first, end int
		want       bool
	}{
		{0, 1<<20 - page, true}, {0, len(list), false}, {1 << 20, 1<<20 + 1, false}, {1<<20 + page, len(list), true},
	} {
		if got := untouched(tt.first, tt.end); got != tt.want {
			t.Errorf("untouched from %d to %d: %v, want %v", tt.first, tt.end, got, tt.want)
		}
	}
	if isUntouched(list[:page], m.file, m.offset+1) {
		t.Error("memory counts as untouched at another offset of the file")
	}
	if other := slices.Clone(list); isUntouched(other, m.file, m.offset) {
		t.Error("memory that was not mapped counts as untouched")
	}
}

// TestMappedFileCut: a file that is shorter than it says is an error, as without mappings.
func TestMappedFileCut(t *testing.T) {
	mapAll(t, 1)
	dir, errs := t.TempDir(), filepath.Join(t.TempDir(), "errors")
	t.Setenv(rundir.EnvKeepDir, dir)
	t.Setenv(rundir.EnvKeepErrors, errs)
	list := make([]float64, 1000)
	vars := Vars{"x": &list}
	vars.Save()
	if err := os.Truncate(rundir.KeptValue(dir, "x", 0), 5000); err != nil {
		t.Fatal(err)
	}
	vars.Load(nil)
	if u := program.unread["x"]; u == nil || u.err == nil {
		t.Error("no error")
	}
}

// BenchmarkSlices keeps 400 MB: it measures the additional time at a cell's beginning and end.
func BenchmarkSlices(b *testing.B) {
	b.Setenv(rundir.EnvKeepDir, b.TempDir())
	list := make([]float32, 100_000_000)
	vars := Vars{"x": &list}
	vars.Save()
	for _, least := range []uint64{large, 1 << 60} {
		b.Run(fmt.Sprintf("from %d", least), func(b *testing.B) {
			before := large
			defer func() { large = before }()
			large = least
			for b.Loop() {
				vars.Load(nil)
				list[1] = list[0]
				vars.Save()
			}
		})
	}
}
