package local

import (
	"testing"

	"gonbatch/submit"
)

func TestPlatform(t *testing.T) {
	for _, tc := range []struct {
		name  string
		tasks int
		gpu   bool
		want  string
	}{
		{name: "no GPU", tasks: 1},
		{name: "a GPU", tasks: 1, gpu: true, want: "cuda"},
		{name: "several ranks train on CPUs", tasks: 2, gpu: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := &Scheduler{hasGPU: func() bool { return tc.gpu }}
			if got := s.Platform(submit.JobSpec{Nodes: 1, TasksPerNode: tc.tasks}); got != tc.want {
				t.Errorf("platform = %q, want %q", got, tc.want)
			}
		})
	}
}
