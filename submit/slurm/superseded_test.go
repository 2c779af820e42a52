package slurm

import (
	"os"
	"syscall"
	"testing"

	"gonbatch/internal/rundir"
)

// TestSupersededStart: a start on a node that SLURM has lost begins no cell alongside the next
// start, and does not requeue that one.
func TestSupersededStart(t *testing.T) {
	const next = "#!/bin/bash\necho 'the next' >> \"$GONBATCH_RUN_DIR/starts\"\n"
	for _, tc := range []struct {
		name, program string
		signal        syscall.Signal
	}{
		{name: "between two cells", program: next},
		{name: "told to stop", program: next + saving[len("#!/bin/bash\n"):], signal: syscall.SIGTERM},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newStart(t)
			s.spec.Cells = []rundir.Cell{{Name: "train"}, {Name: "after"}}
			s.programs = map[string]string{"train": tc.program, "after": "#!/bin/bash\ntouch after"}
			out, code := s.run(t, tc.signal)
			if code == 0 || s.has("after") || s.has("requeued") {
				t.Errorf("exit code %d, the next cell ran: %t, queued again: %t\n%s", code, s.has("after"), s.has("requeued"), out)
			}
			if status, err := os.ReadFile(s.spec.RunDir.ExitStatus()); err == nil {
				t.Errorf("it recorded its end: %q", status)
			}
		})
	}
}
