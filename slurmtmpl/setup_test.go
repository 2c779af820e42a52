package slurmtmpl

import (
	"gonbatch/internal/rundir"
	"os"
	"syscall"
	"testing"
)

// TestSetupLeavesALoop: a job does not wait for its setup's background processes.
func TestSetupLeavesALoop(t *testing.T) {
	s := newStart(t)
	s.spec.Setup = []string{
		"for ((i = 0; i < 600; i++)); do [ ! -e ended ] || exit; sleep 0.1; done > loop.log && touch over &",
		"export SET=yes",
	}
	s.programs["train"] = "#!/bin/bash\ntouch ended\n[ \"$SET\" = yes ]"
	out, code := s.run(t, 0)
	if code != 0 || s.has("over") || !s.has("ended") {
		t.Errorf("exit code %d, the job waited for the loop: %t\n%s", code, s.has("over"), out)
	}
}

// TestSignalDuringSetup: a signal during the setup is handled, and the setup's environment is
// complete.
func TestSignalDuringSetup(t *testing.T) {
	s := newStart(t)
	s.spec.Setup = []string{
		"touch running-0 running-1; for ((i = 0; i < 600; i++)); do [ ! -e heard ] || break; sleep 0.1; done",
		"touch set",
	}
	s.write(t, "scontrol", scontrolFake+"touch heard\n")
	out, code := s.run(t, syscall.SIGTERM)
	if code != 75 || !s.has("set") || !s.has("requeued") || s.has("saved") {
		t.Errorf("exit code %d, the setup has ended: %t, queued again: %t\n%s", code, s.has("set"), s.has("requeued"), out)
	}
}

// TestShellHasSavedNothing: only ranks can have saved. A shell command with their exit code has
// failed.
func TestShellHasSavedNothing(t *testing.T) {
	for name, change := range map[string]func(*start){
		"cell": func(s *start) {
			s.spec.Cells = []rundir.Cell{{Name: "shell-1", Shell: true, Once: true}, {Name: "train"}}
			s.programs["shell-1.sh"] = "#!/bin/bash\nexit 75"
		},
		"setup": func(s *start) { s.spec.Setup = []string{"(exit 75)"} },
	} {
		t.Run(name, func(t *testing.T) {
			s := newStart(t)
			s.programs["train"] = "#!/bin/bash\ntouch ran"
			s.write(t, "srun", "#!/bin/bash\nwhile [[ $1 == --* ]]; do shift; done\nexec \"$@\"\n")
			change(s)
			out, code := s.run(t, 0)
			status, err := os.ReadFile(s.spec.RunDir.ExitStatus())
			if code != 1 || string(status) != "12 1\n" || s.has("ran") || s.has("requeued") {
				t.Errorf("exit code %d, recorded %q, %v; want 1\n%s", code, status, err, out)
			}
		})
	}
}
