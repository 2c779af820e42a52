package keep

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"gonbatch/internal/rundir"
)

// TestUnused: the value of a variable that a program doesn't use is neither read nor written,
// unless there is none yet.
func TestUnused(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(rundir.EnvKeepDir, dir)
	file := rundir.KeptValue(dir, "x", 0)
	used, unused := Declared{"x": "hash"}, Declared{"x": Unused + "hash"}
	// run runs a program that sets the variable.
	run := func(declared Declared, initial, set int) (begin int) {
		x := initial
		v := Vars{"x": &x}
		v.Load(declared)
		save := v.Begin()
		begin, x = x, set
		save()
		return begin
	}
	run(unused, 1, 2)
	if got := run(used, 1, 3); got != 2 {
		t.Errorf("the first value was %d, want 2: the program that keeps a variable saves it", got)
	}
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(file, old, old); err != nil {
		t.Fatal(err)
	}
	if got := run(unused, 1, 4); got != 1 {
		t.Errorf("an unused variable began with %d, want its initial value", got)
	}
	if info, err := os.Stat(file); err != nil || !info.ModTime().Equal(old) {
		t.Errorf("the file was written: %v, %v", info.ModTime(), err)
	}
	if got := run(used, 1, 5); got != 3 {
		t.Errorf("later it began with %d, want 3", got)
	}
	run(Declared{"x": Unused + "other"}, 1, 6)
	if got := run(used, 7, 7); got != 7 {
		t.Errorf("declared otherwise and back again, it began with %d, want its initial value", got)
	}
}

// TestUnusedByRanks: a cell with a single rank that doesn't use a variable drops the other ranks'
// values, as a cell that uses it does, and as in a job.
func TestUnusedByRanks(t *testing.T) {
	for _, single := range []Declared{{"x": "hash"}, {"x": Unused + "hash"}} {
		t.Setenv(rundir.EnvKeepDir, t.TempDir())
		ranks := []int{10, 11}
		for rank := range ranks {
			runRank(t, rank, 2, Declared{"x": "hash"}, func(x *int) { *x = ranks[rank] })
		}
		runRank(t, 0, 1, single, func(*int) {})
		for rank := range ranks {
			if got := runRank(t, rank, 2, Declared{"x": "hash"}, func(*int) {}); got != 10 {
				t.Errorf("after %v, rank %d has %d, want rank 0's 10", single, rank, got)
			}
		}
	}
}

// TestLateRank: a rank that begins when rank 0 has ended already begins with the earlier value, and
// in the first cell with the initial value.
func TestLateRank(t *testing.T) {
	count := func(x *int) { *x++ }
	for _, first := range []int{0, 1} {
		for _, hashes := range [][]string{{"", "", "", ""}, {"a", "a", "b", "b"}, {New + "a", "a", New + "a", "a"}} {
			dir := t.TempDir()
			t.Setenv(rundir.EnvKeepDir, dir)
			if first == 1 {
				runRank(t, 0, 1, Declared{"x": strings.TrimPrefix(hashes[0], New)}, count)
			}
			begin := first
			for i, hash := range hashes {
				if strings.HasPrefix(hash, New) || i > 0 && hash != strings.TrimPrefix(hashes[i-1], New) {
					begin = 0
				}
				for rank := range 3 {
					if got := runRank(t, rank, 3, Declared{"x": hash}, count); got != begin {
						t.Errorf("%d first, %q: in cell %d, rank %d begins with %d, want %d", first, hashes, i, rank, got, begin)
					}
				}
				begin++
			}
			if files, err := os.ReadDir(dir); len(files) != 3 || err != nil {
				t.Errorf("%v in the folder, want a file for each rank: %v", files, err)
			}
		}
	}
}

// runRank runs a rank of a cell that keeps x, and returns the value with which x begins.
func runRank(t *testing.T, rank, size int, declared Declared, main func(x *int)) (begin int) {
	t.Helper()
	for _, name := range []string{"OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"} {
		t.Setenv(name, "")
	}
	t.Setenv("RANK", strconv.Itoa(rank))
	t.Setenv("WORLD_SIZE", strconv.Itoa(size))
	for other := 1; rank == 0 && other < size; other++ { // As the kernel does.
		dir := os.Getenv(rundir.EnvKeepDir)
		_ = os.Link(rundir.KeptValue(dir, "x", 0), rundir.KeptValue(dir, "x", other))
	}
	x := 0
	v := Vars{"x": &x}
	v.Load(declared)
	save := v.Begin()
	begin = x
	main(&x)
	save()
	return begin
}

// TestSameValueOtherBytes: gob's encoding of a value depends on the types that the program has
// encoded before; the file stays as it is anyway.
func TestSameValueOtherBytes(t *testing.T) {
	type first struct{ A int }
	type kept struct{ B int }
	if dir := os.Getenv(sameValue); dir != "" {
		t.Setenv(rundir.EnvKeepDir, dir)
		(Vars{"a": &first{1}, "x": &kept{1}}).Save()
		return
	}
	dir := t.TempDir()
	t.Setenv(rundir.EnvKeepDir, dir)
	if status := runSelf(t, t.Name(), sameValue+"="+dir); status != 0 {
		t.Fatalf("exit status %d", status)
	}
	file := rundir.KeptValue(dir, "x", 0)
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var x kept
	v := Vars{"x": &x}
	v.Load(nil)
	v.Save()
	if after, err := os.ReadFile(file); err != nil || !bytes.Equal(after, before) || x.B != 1 {
		t.Errorf("%v was written again: %q, then %q, %v", x, before, after, err)
	}
	x.B = 2
	v.Save()
	x = kept{}
	if v.Load(nil); x.B != 2 {
		t.Errorf("loaded %v, want the new value", x)
	}
}

const sameValue = "TEST_SAME_VALUE"
