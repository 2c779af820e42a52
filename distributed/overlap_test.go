package distributed_test

import (
	"reflect"
	"strings"
	"testing"

	"gonbatch/distributed"
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
// machines, or if all ranks say so.
func TestOverlapChoice(t *testing.T) {
	tests := []struct {
		name     string
		choices  []string
		machines []string
		want     bool
		err      string
	}{
		{"one machine", []string{"", "", ""}, []string{"a", "a", "a"}, false, ""},
		{"two machines", []string{"", "", ""}, []string{"a", "a", "b"}, true, ""},
		{"on", []string{"on", "on"}, []string{"a", "a"}, true, ""},
		{"off", []string{"off", "off"}, []string{"a", "b"}, false, ""},
		{"another word", []string{"yes", "yes"}, []string{"a", "b"}, false, `GONBATCH_OVERLAP="yes": it must be on or off`},
		{"different choices", []string{"on", ""}, []string{"a", "b"}, false, `GONBATCH_OVERLAP="" on rank 1 and "on" on rank 0: all ranks need the same`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := distributed.OverlapOf(test.choices, test.machines)
			if got != test.want || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("%v, %v; want %v, %q", got, err, test.want, test.err)
			}
		})
	}
}
