package slurmtmpl

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"gonbatch/internal/bounded"
	"gonbatch/internal/machine"
	"gonbatch/internal/rundir"
	"gonbatch/submit"
)

// srunTwice is a fake srun that runs its command as two tasks, passes SIGUSR1 on to all their
// processes as SLURM does, and ends with the higher of their exit codes. As with
// --kill-on-bad-exit, it kills the other task when one fails.
const srunTwice = `#!/bin/bash
while [[ $1 == --* ]]; do shift; done
trap 'for t in $(jobs -p); do kill -USR1 $t; pkill -USR1 -P $t; done' USR1 # Before a task can say that it runs.
SLURM_PROCID=0 "$@" & first=$!
SLURM_PROCID=1 "$@" & second=$!
code=0
for task in $first $second; do
  while :; do wait $task; c=$?; kill -0 $task 2> /dev/null || break; done
  wait $task; c=$?
  [ $c = 0 ] || kill -9 $first $second 2> /dev/null
  [ $c -le $code ] || code=$c
done
exit $code
`

// scontrolFake shows the state in the file "state", and records a requeue, which it refuses if
// there is a file "forbidden".
const scontrolFake = `#!/bin/bash
case $1 in
show) echo "JobId=12 JobName=x JobState=LIE Reason=Lie"; echo "   JobState=$(cat state) Dependency=(null)" ;;
requeue) if [ -e forbidden ]; then cat forbidden >&2; exit 1; fi; echo "$2" >> requeued ;;
esac
`

// saving is a program that is told to stop: rank 0 ends a second before rank 1, and both save.
const saving = `#!/bin/bash
trap 'sleep $SLURM_PROCID; echo saved >> saved; exit 75' USR1
touch running-$SLURM_PROCID
for ((i = 0; i < 300; i++)); do sleep 0.1; done
`

// start is one start of a job's script in a folder, with fakes for SLURM's commands.
type start struct {
	dir      string
	spec     submit.JobSpec
	env      []string
	state    string
	programs map[string]string
}

func newStart(t *testing.T) *start {
	t.Helper()
	s := &start{dir: t.TempDir(), spec: minimal(), programs: map[string]string{"train": saving}}
	run, err := rundir.Create(t.TempDir(), "x", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	s.spec.RunDir, s.spec.MaxRestarts = run, 2
	s.write(t, "srun", srunTwice)
	s.write(t, "scontrol", scontrolFake)
	s.write(t, "state", "RUNNING Reason=None")
	return s
}

func (s *start) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

func (s *start) has(name string) bool {
	_, err := os.Stat(filepath.Join(s.dir, name))
	return err == nil
}

// run runs the script, and sends it the signal once both ranks run, if that is not 0.
func (s *start) run(t *testing.T, signal syscall.Signal) (out string, code int) {
	t.Helper()
	for name, text := range s.programs {
		if err := os.WriteFile(s.spec.RunDir.Program(name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	script, err := Render(s.spec)
	if err != nil {
		t.Fatal(err)
	}
	s.write(t, "script", string(script))
	cmd := exec.Command("bash", "script")
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "PATH="+s.dir+":"+os.Getenv("PATH"), "SLURM_JOB_ID=12", "SLURM_JOB_NODELIST=n1")
	cmd.Env = append(cmd.Env, s.env...)
	var all bytes.Buffer
	cmd.Stdout, cmd.Stderr = &all, &all
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for i := 0; signal != 0 && (!s.has("running-0") || !s.has("running-1")); i++ {
		if i > 2400 {
			t.Fatalf("the ranks do not run:\n%s", &all)
		}
		time.Sleep(50 * time.Millisecond)
	}
	if signal != 0 {
		if err := cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
	}
	_ = cmd.Wait() // The test checks its code.
	t.Logf("%s", &all)
	return all.String(), cmd.ProcessState.ExitCode()
}

// TestStopAndRequeue: the ranks are told to stop, both save, and the rest depends on SLURM and on
// the limits.
func TestStopAndRequeue(t *testing.T) {
	const resume = "resume it with: submit resume "
	for _, tc := range []struct {
		name     string
		signal   syscall.Signal
		change   func(*start)
		state    string
		refusal  string
		requeued bool
		recorded bool
		says     string
	}{
		{name: "time limit near", signal: syscall.SIGUSR1, requeued: true, says: "the time limit is near"},
		{name: "preempted with a grace time", signal: syscall.SIGTERM, requeued: true, says: "the ranks have saved; job 12 is queued again"},
		{name: "time limit passed", signal: syscall.SIGTERM, state: "COMPLETING Reason=TimeLimit", requeued: true},
		{name: "cancelled, preempted or requeued by others", signal: syscall.SIGTERM, state: "COMPLETING Reason=None", says: "SLURM is ending this start of the job"},
		{name: "the site forbids it", signal: syscall.SIGUSR1, refusal: "Requested operation is presently disabled", recorded: true,
			says: "not queued again: Requested operation is presently disabled\ngonbatch: " + resume},
		{name: "restart limit", signal: syscall.SIGUSR1, change: func(s *start) { s.env = []string{"SLURM_RESTART_COUNT=2"} }, recorded: true,
			says: "not queued again: restarts so far: 2, and --max-restarts=2\ngonbatch: " + resume},
		{name: "one more restart is free", signal: syscall.SIGUSR1, change: func(s *start) { s.env = []string{"SLURM_RESTART_COUNT=1"} }, requeued: true},
		{name: "restarts turned off", signal: syscall.SIGUSR1, change: func(s *start) { s.spec.MaxRestarts = 0 }, recorded: true,
			says: "not queued again: --max-restarts=0\ngonbatch: " + resume},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := newStart(t)
			if tc.change != nil {
				tc.change(s)
			}
			if tc.state != "" {
				s.write(t, "state", tc.state)
			}
			if tc.refusal != "" {
				s.write(t, "forbidden", tc.refusal)
			}
			out, code := s.run(t, tc.signal)
			if saved, _ := os.ReadFile(filepath.Join(s.dir, "saved")); code != 75 || string(saved) != "saved\nsaved\n" {
				t.Errorf("exit code %d, want 75; the ranks said %q, want that both have saved", code, saved)
			}
			if s.has("requeued") != tc.requeued || !strings.Contains(out, tc.says) {
				t.Errorf("requeued: %v, want %v; the log should say %q", s.has("requeued"), tc.requeued, tc.says)
			}
			if status, err := os.ReadFile(s.spec.RunDir.ExitStatus()); (err == nil) != tc.recorded || tc.recorded && string(status) != "12 75\n" {
				t.Errorf("exit status %q, %v; want one: %v", status, err, tc.recorded)
			}
			if rundir.IsFinished(s.spec.RunDir, "train") {
				t.Error("the cell that was stopped counts as finished")
			}
		})
	}
}

// TestStartsGoOn: a later start knows its number, skips cells that have succeeded, and forgets the
// failure of the one before.
func TestStartsGoOn(t *testing.T) {
	s := newStart(t)
	s.spec.Cells = []rundir.Cell{{Name: "shell-1", Shell: true, Once: true}, {Name: "train"}}
	s.programs = map[string]string{
		"shell-1.sh": "#!/bin/bash\necho shell ran >> shells",
		"train":      "#!/bin/bash\necho \"restart $GONBATCH_RESTARTS, requeue $GONBATCH_REQUEUE\" >> starts-$SLURM_PROCID; [ $GONBATCH_RESTARTS = 1 ] || exit 7",
	}
	if _, code := s.run(t, 0); code == 0 {
		t.Error("the first start ends well though its ranks fail")
	}
	if _, err := (rundir.Failure{Error: "boom"}).Write(s.spec.RunDir); err != nil {
		t.Fatal(err)
	}
	out, code := s.run(t, 0)
	if code != 0 || !strings.Contains(out, "gonbatch: cell shell-1 succeeded in an earlier start\n") || !strings.Contains(out, "start 2,") {
		t.Errorf("the second start ends with %d:\n%s", code, out)
	}
	if _, err := rundir.ReadFailure(s.spec.RunDir); err == nil {
		t.Error("the failure of the first start is still there")
	}
	for name, want := range map[string]string{"shells": "shell ran\nshell ran\n", "starts-0": "restart 0, requeue 75\nrestart 1, requeue 75\n"} {
		if got, err := os.ReadFile(filepath.Join(s.dir, name)); string(got) != want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, want)
		}
	}
	if cells, err := rundir.FinishedCells(s.spec.RunDir); !slices.Equal(cells, []string{"shell-1", "train"}) {
		t.Errorf("finished cells: %v, %v", cells, err)
	}
}

// TestLostStart: a start on a node that SLURM has lost records nothing once the next has begun.
func TestLostStart(t *testing.T) {
	s := newStart(t)
	s.programs = map[string]string{"train": "#!/bin/bash\necho 'the next' >> \"$GONBATCH_RUN_DIR/starts\"\nexit $END"}
	for _, end := range []string{"0", "1"} {
		s.env = []string{"END=" + end}
		s.run(t, 0)
		if rundir.IsFinished(s.spec.RunDir, "train") {
			t.Error("it finished a cell")
		}
		if status, err := os.ReadFile(s.spec.RunDir.ExitStatus()); err == nil {
			t.Errorf("it recorded its end: %q", status)
		}
	}
}

// TestLostNode: srun ends with 0 when SLURM ends the job because of a lost node.
func TestLostNode(t *testing.T) {
	s := newStart(t)
	s.write(t, "state", "COMPLETING Reason=None")
	s.programs = map[string]string{"train": "#!/bin/bash\nexit 0"}
	out, code := s.run(t, 0)
	if code == 0 || rundir.IsFinished(s.spec.RunDir, "train") || !strings.Contains(out, "SLURM is ending this start of the job") {
		t.Errorf("exit code %d, and the cell counts as finished: %v\n%s", code, rundir.IsFinished(s.spec.RunDir, "train"), out)
	}
	if status, err := os.ReadFile(s.spec.RunDir.ExitStatus()); err == nil {
		t.Errorf("it recorded its end: %q", status)
	}
}

// terminating is a fake scontrol that doesn't answer. Its n-th call sends the script SIGTERM.
const terminating = `#!/bin/bash
echo called >> calls
if [ "$(grep -c '' calls)" = %d ]; then kill -TERM $(ps -o ppid= $(ps -o ppid= $PPID)); fi
kill -KILL $$
`

// TestNoAnswer: SLURM's kill reaches scontrol before the script. Then the script does not record
// the exit code of a program that was told to end, but it does record the code of one that failed
// by itself.
func TestNoAnswer(t *testing.T) {
	const killed = "trap 'exit 143' USR1\ntouch running-$SLURM_PROCID\nfor ((i = 0; i < 300; i++)); do sleep 0.1; done"
	for _, tc := range []struct {
		name     string
		program  string
		signal   syscall.Signal
		call     int // Which call of scontrol sends SIGTERM; 0 for none.
		recorded bool
	}{
		{"killed after SIGTERM", killed, syscall.SIGTERM, 0, false},
		{"killed after SIGUSR1 and SIGTERM", killed, syscall.SIGUSR1, 1, false},
		{"killed before the script gets SIGTERM", "kill -TERM $$", 0, 2, false},
		{"failed by itself", "exit 3", 0, 0, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := newStart(t)
			s.write(t, "scontrol", fmt.Sprintf(terminating, tc.call))
			s.programs = map[string]string{"train": "#!/bin/bash\n" + tc.program}
			out, code := s.run(t, tc.signal)
			if status, err := os.ReadFile(s.spec.RunDir.ExitStatus()); code == 0 || (err == nil) != tc.recorded {
				t.Errorf("exit code %d, recorded %q, %v; want a record: %v\n%s", code, status, err, tc.recorded, out)
			}
		})
	}
}

// TestTooManyRestarts: SLURM's own restarts count too.
func TestTooManyRestarts(t *testing.T) {
	s := newStart(t)
	s.env = []string{"SLURM_RESTART_COUNT=3"}
	out, code := s.run(t, 0)
	if code != 75 || s.has("running-0") || !strings.Contains(out, "restarts so far: 3, and --max-restarts=2\ngonbatch: resume it with: submit resume ") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
}

// TestShellcheck checks the scripts with shellcheck, at the level of warnings: a generated script
// need not follow the hints below.
func TestShellcheck(t *testing.T) {
	path, err := exec.LookPath("shellcheck")
	if err != nil {
		machine.Lacks(t, "shellcheck is not on PATH: apt-get install shellcheck")
	}
	goldens, err := filepath.Glob("testdata/*.sbatch")
	if err != nil || len(goldens) < 3 {
		t.Fatalf("scripts: %v, %v", goldens, err)
	}
	out, err := bounded.CombinedOutput(exec.Command(path, append([]string{"--severity=warning"}, goldens...)...))
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestRankShell: the shell that starts a rank exits with the rank's own code, unless the rank has
// saved.
func TestRankShell(t *testing.T) {
	if script := string(rendered(t)); !strings.Contains(script, "\ngonbatch_env='"+rankEnv+"'\n") ||
		!strings.Contains(script, "\ngonbatch_rank='"+strings.Replace(rankShell, rankEnv, "'$gonbatch_env'", 1)+"'\n") {
		t.Fatalf("the script has another:\n%s", script)
	}
	for _, tc := range []struct {
		name, program string
		code          int
		stopped       bool
	}{
		{"ends well", "exit 0", 0, false},
		{"fails", "exit 1", 1, false},
		{"is killed", "exit 137", 137, false},
		{"fails with the code of one that has saved", "exit 75", 1, false},
		{"was told to stop", "kill -USR1 $PPID; exit 75", 0, true},
		{"is a trainer that another rank has told to stop", `: > "$GONBATCH_STOPPED"; exit 75`, 0, true},
	} {
		stopped := filepath.Join(t.TempDir(), "stopped")
		cmd := exec.Command("bash", "-c", "umask 022; "+rankShell, "gonbatch", "bash", "-c", tc.program)
		cmd.Env = append(os.Environ(), "GONBATCH_STOPPED="+stopped, "SLURM_STEP_ID=3")
		_ = bounded.Run(cmd) // The test checks its code.
		if _, err := os.Stat(stopped); cmd.ProcessState.ExitCode() != tc.code || (err == nil) != tc.stopped {
			t.Errorf("a program that %s: %d, file: %v", tc.name, cmd.ProcessState.ExitCode(), err)
		}
		if step, _ := os.ReadFile(stopped + ".failed"); (string(step) == "3\n") != (tc.code != 0) {
			t.Errorf("a program that %s left step %q for reap", tc.name, step)
		}
		for _, path := range []string{stopped, stopped + ".failed"} {
			if info, err := os.Stat(path); err == nil && info.Mode().Perm() != 0o600 && !strings.HasPrefix(tc.program, ":") {
				t.Errorf("a program that %s left %s with mode %o", tc.name, filepath.Base(path), info.Mode().Perm())
			}
		}
	}
}

func rendered(t *testing.T) []byte {
	t.Helper()
	script, err := Render(minimal())
	if err != nil {
		t.Fatal(err)
	}
	return script
}
