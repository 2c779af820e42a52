package slurm

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gonbatch/internal/rundir"
)

// hostile is a value with everything that could confuse a shell, srun or sbatch, except a newline.
const hostile = `-x 'q' "d" $(touch pwned) ` + "`id`" + ` \ # %j ; é网`

// srunRecording records its arguments, each ended by a NUL, and runs the command as srunFake does.
var srunRecording = strings.Replace(srunFake, "#!/bin/bash\n", "#!/bin/bash\nprintf '%s\\0' \"$@\" > srun-arguments\n", 1)

// TestHostileValues: values reach srun and the program as they are, and none runs as a command.
func TestHostileValues(t *testing.T) {
	for _, setup := range [][]string{nil, {"true # comment"}} {
		s := newStart(t)
		run, err := rundir.Create(filepath.Join(t.TempDir(), `a 'b' "c" $(d) %j é#`), "x", time.Now())
		if err != nil {
			t.Fatal(err)
		}
		work := filepath.Join(t.TempDir(), hostile)
		if err := os.Mkdir(work, 0o755); err != nil {
			t.Fatal(err)
		}
		s.spec.RunDir, s.spec.WorkDir, s.spec.Nodes, s.spec.Setup = run, work, 1, setup
		s.spec.Env = map[string]string{"V": hostile + "\nsecond line"}
		s.spec.Cells[0].Args, s.spec.Cells[0].Env = []string{hostile}, map[string]string{"W": hostile}
		s.spec.Args = []string{"", "-n", "two\nlines", ":"}
		s.programs["train"] = "#!/bin/bash\nprintf '%s\\0' \"$V\" \"$W\" \"$PWD\" \"$@\" > \"$GONBATCH_RUN_DIR/words\""
		s.write(t, "srun", srunRecording)
		out, code := s.run(t, 0)
		if code != 0 || s.has("pwned") {
			t.Errorf("exit code %d, a value ran as a command: %v\n%s", code, s.has("pwned"), out)
		}
		want := []string{hostile + "\nsecond line", hostile, work, hostile, "", "-n", "two\nlines", ":"}
		if diff := cmp.Diff(want, words(t, filepath.Join(run.Path(), "words"))); diff != "" {
			t.Errorf("setup %q, the program: %s", setup, diff)
		}
		want = []string{
			"--nodes=1", "--ntasks=1", "--ntasks-per-node=1", "--mpi=none", "--kill-on-bad-exit=1", "--export=ALL", "--chdir=" + work, "--open-mode=append",
			"--output=" + strings.ReplaceAll(run.Path(), "%", "%%") + "/logs/rank-%t.log", run.Submit(), "rank", "--step", run.Path(), "train",
		}
		if diff := cmp.Diff(want, words(t, filepath.Join(s.dir, "srun-arguments"))); diff != "" {
			t.Errorf("setup %q, srun: %s", setup, diff)
		}
	}
}

// words reads words that end in a NUL each.
func words(t *testing.T, path string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
}

// TestFirstFailure: no cell runs after one that fails.
func TestFirstFailure(t *testing.T) {
	s := newStart(t)
	s.spec.Cells = []rundir.Cell{{Name: "one"}, {Name: "fails"}, {Name: "three"}}
	s.programs = map[string]string{"one": "#!/bin/bash\ntouch one", "fails": "#!/bin/bash\nexit 7", "three": "#!/bin/bash\ntouch three"}
	if out, code := s.run(t, 0); code != 7 || !s.has("one") || s.has("three") {
		t.Errorf("exit code %d, one ran: %v, three ran: %v\n%s", code, s.has("one"), s.has("three"), out)
	}
}

// TestNothingRan: srun says that all went well, and a rank has left no word.
func TestNothingRan(t *testing.T) {
	for silent, srun := range []string{
		"#!/bin/bash\necho 'srun: error: launch failed: Slurmd could not connect IO' >&2\n",
		strings.Replace(srunFake, "i < tasks", "i < 1", 1),
	} {
		t.Run(fmt.Sprint("rank ", silent), func(t *testing.T) {
			t.Parallel()
			s := newStart(t)
			s.write(t, "srun", srun)
			s.programs["train"] = "#!/bin/bash\ntrue"
			out, code := s.run(t, 0)
			if want := fmt.Sprintf("cell train: its launcher says that all went well, but rank %d has not recorded that it ended well", silent); code != rundir.NoRecordCode || rundir.IsFinished(s.spec.RunDir, "train") || !strings.Contains(out, want) {
				t.Errorf("exit code %d\n%s", code, out)
			}
		})
	}
}

// TestUnrecordedSuccess: a cell whose success cannot be recorded does not run again.
func TestUnrecordedSuccess(t *testing.T) {
	s := newStart(t)
	s.programs["train"] = "#!/bin/bash\necho ran >> ran-$SLURM_PROCID; mkdir -p \"$GONBATCH_RUN_DIR\"; : > \"$GONBATCH_RUN_DIR/finished\""
	out, code := s.run(t, 0)
	ran, err := os.ReadFile(filepath.Join(s.dir, "ran-0"))
	if code != rundir.NoRecordCode || string(ran) != "ran\n" || err != nil || !strings.Contains(out, "cell train has succeeded, but that cannot be recorded: ") {
		t.Errorf("exit code %d, %q, %v\n%s", code, ran, err, out)
	}
}
