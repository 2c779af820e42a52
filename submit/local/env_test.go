package local

import (
	"testing"

	"gonbatch/internal/plugin"
	"gonbatch/submit"
)

// TestDefaultDevices: the only rank has all GPUs, or the CPU as one device.
func TestDefaultDevices(t *testing.T) {
	for _, test := range []struct {
		spec submit.JobSpec
		want string
	}{
		{submit.JobSpec{Nodes: 1, TasksPerNode: 1, Platform: plugin.CUDA}, "all"},
		{submit.JobSpec{Nodes: 1, TasksPerNode: 4, Platform: plugin.CUDA}, "1"},
		{submit.JobSpec{Nodes: 1, TasksPerNode: 1, Platform: plugin.CPU}, "1"},
		{submit.JobSpec{Nodes: 1, TasksPerNode: 1}, "1"},
	} {
		if got := defaultDevices(test.spec); got != test.want {
			t.Errorf("%+v: %s devices, want %s", test.spec, got, test.want)
		}
	}
}
