package local

import (
	"testing"

	"gonbatch/submit"
)

func TestPlatform(t *testing.T) {
	for _, tc := range []struct {
		name  string
		tasks int
		gpus  int
		want  string
	}{
		{name: "no GPU", tasks: 1},
		{name: "a GPU", tasks: 1, gpus: 1, want: "cuda"},
		{name: "a GPU for each rank", tasks: 4, gpus: 4, want: "cuda"},
		{name: "more ranks than GPUs train on CPUs", tasks: 3, gpus: 2, want: "cpu"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := &Scheduler{gpus: func() int { return tc.gpus }}
			if got := s.Platform(submit.JobSpec{Nodes: 1, TasksPerNode: tc.tasks}); got != tc.want {
				t.Errorf("platform = %q, want %q", got, tc.want)
			}
		})
	}
}
