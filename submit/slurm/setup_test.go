package slurm

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"gonbatch/internal/rundir"
	"gonbatch/submit"
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

// TestSignalDuringSetup: a signal during the setup is handled once the setup is complete: no cell
// begins.
func TestSignalDuringSetup(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGUSR1} {
		s := newStart(t)
		s.spec.Setup = []string{"touch running-0 running-1; for i in 1 2 3 4 5; do sleep 0.2; done", "touch set"}
		out, code := s.run(t, signal)
		if code != 75 || !s.has("set") || !s.has("requeued") || s.has("saved") {
			t.Errorf("%v: exit code %d, the setup has ended: %t, queued again: %t\n%s", signal, code, s.has("set"), s.has("requeued"), out)
		}
	}
}

// TestSetupEnds: a setup that ends the script ends the job, which says and records so.
func TestSetupEnds(t *testing.T) {
	for setup, tc := range map[string]struct {
		code int
		says string
	}{
		"exit 3":              {3, "job 12 ends with exit code 3"},
		"(exit 4)":            {4, "job 12 ends with exit code 4"},
		"false || exit 6":     {6, "job 12 ends with exit code 6"},
		"set -e; (exit 5)":    {5, "job 12 ends with exit code 5"},
		"exit 0":              {1, "a command of --setup has ended the shell"},
		"eval exec true":      {1, "a command of --setup has ended the shell"},
		"trap : EXIT; exit 0": {1, "a command of --setup has ended the shell"},
		"kill -9 $$":          {137, "the setup has failed"},
		"no-such-command":     {127, "no-such-command: command not found"},
		"source /none/at/al":  {1, "No such file or directory"},
	} {
		s := newStart(t)
		s.spec.Setup = []string{"true # comment", setup, "touch after"}
		out, code := s.run(t, 0)
		status, err := os.ReadFile(s.spec.RunDir.ExitStatus())
		if told := submit.NewJobError(submit.Job{ID: "12", Dir: s.spec.RunDir}, submit.Status{State: submit.Failed}).LastLines; len(told) == 0 {
			t.Errorf("%s: nothing is shown", setup)
		}
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

// TestSetupState: the programs get the limits, the umask and SLURM's variables that the setup has
// set, and the job itself doesn't.
func TestSetupState(t *testing.T) {
	s := newStart(t)
	s.spec.Setup = []string{"ulimit -n 12; ulimit -s 4000; ulimit -Sc 0; umask 027", "export ODD=$'\\xff' SLURM_CPU_BIND=none TMPDIR=/nowhere PATH=/bin:/usr/bin LD_PRELOAD=/nowhere/lib.so"}
	s.env = []string{"SLURM_CPU_BIND=inherited", "SLURM_STEP_X=inherited"}
	s.spec.Env = map[string]string{"LD_LIBRARY_PATH": "/nowhere"}
	s.programs["train"] = "#!/bin/bash\necho $(ulimit -Sn) $(ulimit -Hn) $(ulimit -Ss) $(ulimit -Sc) $(umask) $SLURM_CPU_BIND $SLURM_STEP_X $TMPDIR $LD_PRELOAD $LD_LIBRARY_PATH $ODD > found-$SLURM_PROCID"
	out, code := s.run(t, 0)
	found, err := os.ReadFile(filepath.Join(s.dir, "found-1"))
	if want := "12 12 4000 0 0027 none /nowhere /nowhere/lib.so /nowhere \xff\n"; code != 0 || string(found) != want || err != nil {
		t.Errorf("exit code %d, found %q, %v, want %q\n%s", code, found, err, want, out)
	}
}
