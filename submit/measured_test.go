package submit

import (
	"testing"
	"time"

	"gonbatch/internal/rundir"
)

// TestMeasure: the memory of a node is that of its ranks together, the largest of all cells and
// starts; shell commands don't count.
func TestMeasure(t *testing.T) {
	dir, err := rundir.Create(t.TempDir(), "x", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	spec := JobSpec{Nodes: 2, TasksPerNode: 2, CPUsPerTask: 8, Mem: "64G", Cells: []rundir.Cell{{Name: "a"}, {Name: "sh", Shell: true}, {Name: "b"}}}
	if _, ok := Measure(dir, spec); ok {
		t.Error("nothing is recorded")
	}
	began := time.Now()
	for start, cells := range []map[string][]int64{{"a": {1, 2, 3, 9}, "sh": {500, 0, 0, 0}}, {"a": {4, 5, 6, 7}, "b": {8, 8, 1, 1}}} {
		if _, err := rundir.AddStart(dir, "local"); err != nil {
			t.Fatal(err)
		}
		for cell, gigabytes := range cells {
			for rank, memory := range gigabytes {
				end := rundir.End{Rank: rank, Host: []string{"n1", "n2"}[rank/2], Began: began, Ended: began.Add(10 * time.Second), Memory: memory << 30, CPU: 20}
				if err := end.Write(dir, start+1, cell); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	m, ok := Measure(dir, spec)
	if want := (Measured{Memory: 16 << 30, Node: "n1", CPUs: 2}); !ok || m != want {
		t.Errorf("%+v, %t; want %+v", m, ok, want)
	}
	if got, want := m.Describe(spec), "16.0 GiB of 64G of memory on the fullest node (n1), 2.0 of 8 CPUs by each rank"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := m.Advise(spec, false).String(), "--mem 21G --cpus-per-task 3"; got != want {
		t.Errorf("advice %q, want %q", got, want)
	}
}

// TestAdvise: advice is for options that were given, and far off.
func TestAdvise(t *testing.T) {
	for _, tc := range []struct {
		name        string
		m           Measured
		spec        JobSpec
		outOfMemory bool
		want        string
	}{
		{name: "nothing was asked for", m: Measured{Memory: 1 << 30, CPUs: 1}},
		{name: "it fits", m: Measured{Memory: 6 << 30, CPUs: 3}, spec: JobSpec{Mem: "8G", CPUsPerTask: 4}},
		{name: "far too much", m: Measured{Memory: 100 << 20, CPUs: 0.1}, spec: JobSpec{Mem: "8000", CPUsPerTask: 4}, want: "--mem 381M --cpus-per-task 1"},
		{name: "nearly too little", m: Measured{Memory: 15 << 30, CPUs: 9}, spec: JobSpec{Mem: "16G", CPUsPerTask: 8}, want: "--mem 19G"},
		{name: "it fits, and is little", m: Measured{Memory: 22 << 20}, spec: JobSpec{Mem: "200M"}},
		{name: "out of memory", m: Measured{Memory: 1 << 30}, spec: JobSpec{Mem: "16G"}, outOfMemory: true, want: "--mem 24G"},
		{name: "memory for each CPU", m: Measured{Memory: 1 << 30}, spec: JobSpec{Passed: map[string]string{"mem-per-cpu": "8G"}}},
	} {
		if got := tc.m.Advise(tc.spec, tc.outOfMemory).String(); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}
