package distributed_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"gonbatch/distributed"
	"gonbatch/distributed/pjrt"
	"gonbatch/distributed/ranktest"
	"gonbatch/internal/rundir"
)

// travelling makes the gradient of each variable travel while others are computed.
var travelling = []string{"BUCKET_BYTES=1", rundir.EnvOverlap + "=" + rundir.OverlapOn}

// TestOverlapSameBits: the weights are the same, to the bit, whether or not the gradients travel
// while others are computed.
func TestOverlapSameBits(t *testing.T) {
	if ranktest.InRank() {
		trainRank(t)
		return
	}
	tests := []struct {
		launcher ranktest.Launcher
		ranks    int
	}{{ranktest.OpenMPI, 2}, {ranktest.MPICH, 3}, {ranktest.Torchrun, 3}}
	for _, test := range tests {
		t.Run(test.launcher.Name, func(t *testing.T) {
			got, _ := run(t, test.launcher, test.ranks, travelling...)
			want, _ := run(t, test.launcher, test.ranks, "BUCKET_BYTES=1", rundir.EnvOverlap+"="+rundir.OverlapOff)
			if !reflect.DeepEqual(got.Weights, want.Weights) {
				t.Error("the weights differ")
			}
		})
	}
}

// TestOverlapChoice: gradients travel while others are computed if the ranks are on several
// machines and have a core to wait on, or if all ranks say so.
func TestOverlapChoice(t *testing.T) {
	tests := []struct {
		name     string
		choices  []string
		machines []string
		busy     bool
		want     bool
		err      string
	}{
		{"one machine", []string{"", "", ""}, []string{"a", "a", "a"}, false, false, ""},
		{"two machines", []string{"", "", ""}, []string{"a", "a", "b"}, false, true, ""},
		{"two machines, and MPI on one core", []string{"", ""}, []string{"a", "b"}, true, false, ""},
		{"on with MPI on one core", []string{"on", "on"}, []string{"a", "b"}, true, true, ""},
		{"on", []string{"on", "on"}, []string{"a", "a"}, false, true, ""},
		{"off", []string{"off", "off"}, []string{"a", "b"}, false, false, ""},
		{"another word", []string{"yes", "yes"}, []string{"a", "b"}, false, false, `GONBATCH_OVERLAP="yes": it must be on or off`},
		{"different choices", []string{"on", ""}, []string{"a", "b"}, false, false, `GONBATCH_OVERLAP="" on rank 1 and "on" on rank 0: all ranks need the same`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := distributed.OverlapOf(test.choices, test.machines, test.busy)
			if got != test.want || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("%v, %v; want %v, %q", got, err, test.want, test.err)
			}
		})
	}
}

// TestOverlapCompiled: a program in which gradients travel is another one for the compile cache.
func TestOverlapCompiled(t *testing.T) {
	if ranktest.InRank() {
		trainRank(t)
		fmt.Printf("compiled %d programs\n", pjrt.Compilations())
		return
	}
	folder := t.TempDir()
	for _, choice := range []string{rundir.OverlapOff, rundir.OverlapOn} {
		_, out := run(t, ranktest.Torchrun, 2, rundir.EnvCompileCache+"="+folder, rundir.EnvOverlap+"="+choice)
		if compiled(t, out, 2) == 0 {
			t.Errorf("with %s=%s, no program was compiled", rundir.EnvOverlap, choice)
		}
	}
}
