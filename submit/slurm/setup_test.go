package slurm

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"gonbatch/internal/rundir"
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

// TestSignalDuringSetup: a signal does not cut the setup off. Nothing has to be saved yet.
func TestSignalDuringSetup(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGUSR1} {
		s := newStart(t)
		s.spec.Setup = []string{"touch running-0 running-1; for i in 1 2 3 4 5; do sleep 0.2; done", "export SET=yes"}
		s.programs["train"] = "#!/bin/bash\n[ \"$SET\" = yes ] && touch ran"
		if out, code := s.run(t, signal); code != 0 || !s.has("ran") {
			t.Errorf("%v: exit code %d\n%s", signal, code, out)
		}
	}
}

// TestSetupEnds: a setup that ends the script ends the job, which says and records so.
func TestSetupEnds(t *testing.T) {
	for setup, tc := range map[string]struct {
		code int
		says string
	}{
		"exit 3":             {3, "job 12 ends with exit code 3"},
		"(exit 4)":           {4, "job 12 ends with exit code 4"},
		"false || exit 6":    {6, "job 12 ends with exit code 6"},
		"set -e; (exit 5)":   {5, "job 12 ends with exit code 5"},
		"exit 0":             {1, "a command of --setup has ended the shell"},
		"no-such-command":    {127, "no-such-command: command not found"},
		"source /none/at/al": {1, "No such file or directory"},
	} {
		s := newStart(t)
		s.spec.Setup = []string{"true # comment", setup, "touch after"}
		out, code := s.run(t, 0)
		status, err := os.ReadFile(s.spec.RunDir.ExitStatus())
		if code != tc.code || !strings.Contains(out, tc.says) || string(status) != fmt.Sprintf("12 %d\n", tc.code) || s.has("after") || s.has("running-0") {
			t.Errorf("%s: exit code %d, want %d; %q, %v\n%s", setup, code, tc.code, status, err, out)
		}
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
			change(s)
			out, code := s.run(t, 0)
			status, err := os.ReadFile(s.spec.RunDir.ExitStatus())
			if code != 1 || string(status) != "12 1\n" || s.has("ran") || s.has("requeued") {
				t.Errorf("exit code %d, recorded %q, %v; want 1\n%s", code, status, err, out)
			}
		})
	}
}
