package slurm

import (
	"bytes"
	"errors"
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
	"gonbatch/internal/rundir"
	"gonbatch/slurmtmpl"
	"gonbatch/submit"
	"gonbatch/submit/job"
	"gonbatch/submit/rank"
)

// srunFake is a fake srun that runs its command as tasks, passes SIGUSR1 on to all their processes
// as SLURM does, and ends with the highest of their exit codes. As with
// --kill-on-bad-exit, it kills the other task when one fails.
const srunFake = `#!/bin/bash
while [[ $1 == --* ]]; do case $1 in --ntasks=*) tasks=${1#*=} ;; esac; shift; done
export SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=$tasks
trap 'for t in $(jobs -p); do kill -USR1 $t; pkill -USR1 -P $t; done' USR1 # Before a task can say that it runs.
for ((i = 0; i < tasks; i++)); do SLURM_PROCID=$i "$@" & done
code=0 all=$(jobs -p)
for task in $all; do
  while :; do wait $task; c=$?; kill -0 $task 2> /dev/null || break; done
  wait $task; c=$?
  [ $c = 0 ] || kill -9 $all 2> /dev/null
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

// asSubmit makes the test's process the submit command of a run.
const asSubmit = "TEST_AS_SUBMIT"

func TestMain(m *testing.M) {
	if os.Getenv(asSubmit) == "" {
		os.Exit(m.Run())
	}
	_ = os.Unsetenv(asSubmit)
	shell := submit.Shell{Out: &submit.Output{Writer: os.Stdout}, Err: os.Stderr, Environ: os.Environ(), Now: time.Now, CommandLine: os.Args} // Out is no file, as in the command.
	if os.Args[1] == submit.RankName {
		os.Exit(rank.Runner{Shell: shell}.Run(os.Args[2:]))
	}
	os.Exit(RunJob(shell, os.Args[2:]))
}

func minimal() submit.JobSpec {
	return submit.JobSpec{Name: "mnist", Nodes: 2, TasksPerNode: 1, RunDir: rundir.At("/runs/mnist-1"), Cells: []rundir.Cell{{Name: "train"}}}
}

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
	s.write(t, "srun", srunFake)
	s.write(t, "scontrol", scontrolFake)
	s.write(t, "state", "RUNNING Reason=None")
	return s
}

func (s *start) write(t *testing.T, name, text string) {
	t.Helper()
	if err := bounded.WriteProgram(filepath.Join(s.dir, name), text); err != nil {
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
	s.stage(t)
	return s.runScript(t, signal)
}

// stage writes everything that the script needs.
func (s *start) stage(t *testing.T) {
	t.Helper()
	for name, text := range s.programs {
		if err := bounded.WriteProgram(s.spec.RunDir.Program(name), text); err != nil {
			t.Fatal(err)
		}
	}
	script, err := slurmtmpl.Render(s.spec)
	command := fmt.Sprintf("#!/bin/bash\n%s=1 exec %q \"$@\"\n", asSubmit, os.Args[0])
	if err := errors.Join(err, submit.WriteSpec(s.spec.RunDir, s.spec, s.spec), bounded.WriteProgram(s.spec.RunDir.Submit(), command)); err != nil {
		t.Fatal(err)
	}
	s.write(t, "script", string(script))
}

// runScript is run without stage.
func (s *start) runScript(t *testing.T, signal syscall.Signal) (out string, code int) {
	t.Helper()
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
	if err := os.WriteFile(s.spec.RunDir.SchedulerLog(), all.Bytes(), 0o600); err != nil {
		t.Error(err)
	}
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
	for name, want := range map[string]string{"shells": "shell ran\n", "starts-0": "restart 0, requeue 75\nrestart 1, requeue 75\n"} {
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

// TestLostNode: srun ends with 0 when SLURM ends the job because of a lost node. A cell has
// succeeded only if all ranks could still record that they ended well.
func TestLostNode(t *testing.T) {
	for lost, program := range map[bool]string{false: "exit 0", true: "[ $SLURM_PROCID = 0 ] || kill -KILL $PPID"} {
		s := newStart(t)
		s.write(t, "state", "COMPLETING Reason=None")
		s.write(t, "srun", strings.Replace(srunFake, "exit $code", "exit 0", 1))
		s.programs = map[string]string{"train": "#!/bin/bash\n" + program}
		out, code := s.run(t, 0)
		if finished := rundir.IsFinished(s.spec.RunDir, "train"); code == 0 || finished == lost || !strings.Contains(out, "SLURM is ending this start of the job") {
			t.Errorf("a rank is lost: %v: exit code %d, and the cell counts as finished: %v\n%s", lost, code, finished, out)
		}
		if status, err := os.ReadFile(s.spec.RunDir.ExitStatus()); err == nil {
			t.Errorf("it recorded its end: %q", status)
		}
	}
}

// TestWaitsForPlace: srun waits until it says that it has a step.
func TestWaitsForPlace(t *testing.T) {
	dir := newStart(t).spec.RunDir
	var log string
	for _, line := range []string{
		"!gonbatch: cell train on 2 ranks: train", "srun: Job 2 step creation temporarily disabled, retrying (Requested nodes are busy)",
		"srun: Job 2 step creation still disabled, retrying (Requested nodes are busy)", "!srun: Step created for job 2", "!loss 1.5",
	} {
		text, begun := strings.CutPrefix(line, "!")
		log += text + "\n"
		if err := os.WriteFile(dir.SchedulerLog(), []byte(log), 0o600); err != nil {
			t.Fatal(err)
		}
		if waitsForPlace(dir) == begun {
			t.Errorf("after %q, srun waits: %v", text, !begun)
		}
	}
}

// TestWatch: a step ends that srun would wait for in vain, because it gets no place on the nodes,
// or because nobody tells srun that all ranks have ended.
func TestWatch(t *testing.T) {
	for want, prepare := range map[error]func(rundir.Dir) error{
		job.ErrBlocked: func(d rundir.Dir) error {
			return os.WriteFile(d.SchedulerLog(), []byte("srun: Job 75 step creation still disabled, retrying (Requested nodes are busy)\n"), 0o600)
		},
		nil: func(d rundir.Dir) error {
			return errors.Join(rundir.End{Rank: 0, Step: "0"}.Write(d, 1, "train"), rundir.End{Rank: 1, Step: "0"}.Write(d, 1, "train"))
		},
	} {
		st := newStart(t)
		var out bytes.Buffer
		in := &inside{spec: st.spec, shell: submit.Shell{Out: &out, Now: time.Now}}
		s := &step{inside: in, cmd: exec.Command("sleep", "60"), cell: rundir.Cell{Name: "train"}, start: 1, interval: 10 * time.Millisecond, over: make(chan struct{})}
		if err := errors.Join(prepare(st.spec.RunDir), s.cmd.Start()); err != nil {
			t.Fatal(err)
		}
		go s.watch()
		if code, err := s.Wait(); code == 0 || !errors.Is(err, want) || (want != nil) != strings.Contains(out.String(), "waiting for a place for cell train") {
			t.Errorf("exit code %d, %v, want %v:\n%s", code, err, want, out.String())
		}
	}
}

// terminating is a fake scontrol that doesn't answer. Its n-th call sends the script SIGTERM.
const terminating = `#!/bin/bash
echo called >> calls
if [ "$(grep -c '' calls)" = %d ]; then kill -TERM $PPID; fi
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
