package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/procfs"

	"gonbatch/internal/rundir"
	"gonbatch/submit"
)

// saving is a program that is told to stop in its first start, in which rank 1 takes a second
// longer to save, and ends in its second.
const saving = `rank=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-${RANK:-0}}}
echo "restart $GONBATCH_RESTARTS, requeue $GONBATCH_REQUEUE"
[ "$GONBATCH_RESTARTS" = 0 ] || exit 0
trap 'sleep $rank; echo "rank $rank saved"; exit 75' TERM
touch "$GONBATCH_RUN_DIR/running-$rank"
for ((i = 0; i < 6000; i++)); do sleep 0.1; done`

// waitForRanks waits until all ranks have created their files.
func waitForRanks(t *testing.T, spec submit.JobSpec) {
	for rank := range spec.Tasks() {
		path := filepath.Join(spec.RunDir.Path(), fmt.Sprintf("running-%d", rank))
		for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
			if _, err := os.Stat(path); err == nil {
				break
			}
			if time.Now().After(deadline) {
				t.Errorf("rank %d does not run", rank)
				return
			}
		}
	}
}

func TestStopAndGoOn(t *testing.T) {
	for _, tc := range []struct {
		name, mpi string
		tasks     int
		signal    syscall.Signal
	}{
		{name: "one rank", tasks: 1, signal: syscall.SIGINT},
		{name: "Open MPI", mpi: "mpirun.openmpi", tasks: 2, signal: syscall.SIGINT},
		{name: "MPICH", mpi: "mpirun.mpich", tasks: 2, signal: syscall.SIGTERM},
		{name: "no MPI", mpi: noMPI, tasks: 2, signal: syscall.SIGTERM},
	} {
		t.Run(tc.name, func(t *testing.T) {
			spec := newSpec(t, tc.tasks, [2]string{"prepare", "echo prepared"}, [2]string{"train", saving})
			var out, errOut bytes.Buffer
			runner := Runner{Out: &out, Err: &errOut, LookPath: lookOnly(tc.mpi)}
			ctx, cancel := context.WithCancelCause(t.Context())
			go func() {
				waitForRanks(t, spec)
				cancel(submit.Interrupt{Signal: tc.signal})
			}()
			err := runner.Run(ctx, staged(t, spec))
			var job *submit.JobError
			if !errors.As(err, &job) || job.Status.State != submit.Stopped || !strings.Contains(err.Error(), "resume it with: submit resume ") {
				t.Fatalf("error %v, want that it has stopped and how to resume\n%s", err, &errOut)
			}
			for rank := range tc.tasks {
				if log := read(t, spec.RunDir.RankLog(rank)); !strings.Contains(log, "restart 0, requeue 75\n") || !strings.HasSuffix(log, fmt.Sprintf("\nrank %d saved\n", rank)) {
					t.Errorf("log of rank %d: %q", rank, log)
				}
			}
			out.Reset()
			if err := runner.Run(t.Context(), staged(t, spec)); err != nil || out.String() != "restart 1, requeue 75\n" {
				t.Errorf("the second start: %q, %v\n%s", &out, err, &errOut)
			}
			if n, err := rundir.CountStarts(spec.RunDir); n != 2 || err != nil {
				t.Errorf("%d starts, %v", n, err)
			}
		})
	}
}

// TestSecondInterruptKills: a second interrupt kills a program that ignores the first.
func TestSecondInterruptKills(t *testing.T) {
	for _, mpi := range []string{"", "mpirun.openmpi", "mpirun.mpich", noMPI} {
		t.Run(mpi, func(t *testing.T) {
			tasks := 2
			if mpi == "" {
				tasks = 1
			}
			spec := newSpec(t, tasks, [2]string{"deaf", "trap '' TERM\nrank=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-${RANK:-0}}}; echo $$ > \"$GONBATCH_RUN_DIR/pid-$rank\"; touch \"$GONBATCH_RUN_DIR/running-$rank\"\nfor ((i = 0; i < 6000; i++)); do sleep 0.1; done"})
			again := make(chan struct{})
			ctx, cancel := context.WithCancelCause(t.Context())
			go func() {
				waitForRanks(t, spec)
				cancel(submit.Interrupt{Signal: syscall.SIGINT, Again: again})
				time.Sleep(200 * time.Millisecond)
				close(again)
			}()
			start := time.Now()
			err := Runner{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}, LookPath: lookOnly(mpi)}.Run(ctx, staged(t, spec))
			var interrupt submit.Interrupt
			if !errors.As(err, &interrupt) || time.Since(start) > 5*time.Minute {
				t.Errorf("after %v: %v, want an interrupt", time.Since(start), err)
			}
			for rank := range tasks {
				waitForEnd(t, read(t, filepath.Join(spec.RunDir.Path(), fmt.Sprintf("pid-%d", rank))))
			}
		})
	}
}

// waitForEnd waits until a process has ended.
func waitForEnd(t *testing.T, pid string) {
	t.Helper()
	number, err := strconv.Atoi(strings.TrimSpace(pid))
	if err != nil {
		t.Fatal(err)
	}
	for begin := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		process, err := procfs.NewProc(number)
		if err != nil {
			return
		}
		if stat, err := process.Stat(); err != nil || stat.State == "Z" { // It may stay a zombie.
			return
		}
		if time.Since(begin) > time.Minute {
			t.Fatalf("process %d still runs", number)
		}
	}
}

// brokenScreen fails like a screen whose reader is gone, or with another error.
type brokenScreen struct{ err error }

func (b brokenScreen) Write([]byte) (int, error) { return 0, b.err }

// TestScreenGone: the logs have everything, and a screen whose reader is gone is no failure.
func TestScreenGone(t *testing.T) {
	for _, tc := range []struct {
		name string
		err  error
		want string
	}{
		{"the reader is gone", &os.PathError{Op: "write", Path: "|1", Err: syscall.EPIPE}, ""},
		{"no space", syscall.ENOSPC, "output was not shown: no space left on device; all of it is in "},
	} {
		t.Run(tc.name, func(t *testing.T) {
			spec := newSpec(t, 1, [2]string{"talk", "echo one; sleep 0.2; echo two"})
			var errOut bytes.Buffer
			err := Runner{Out: brokenScreen{tc.err}, Err: &errOut}.Run(t.Context(), staged(t, spec))
			if said := errOut.String(); err != nil || !strings.Contains(said, tc.want) || tc.want == "" && said != "" || read(t, spec.RunDir.RankLog(0)) != "one\ntwo\n" {
				t.Errorf("error %v, said %q, want %q; log %q", err, said, tc.want, read(t, spec.RunDir.RankLog(0)))
			}
		})
	}
}

// TestFailureIsForgotten: a start doesn't report an earlier start's failure.
func TestFailureIsForgotten(t *testing.T) {
	spec := newSpec(t, 1, [2]string{"fail", "exit 3"})
	if _, err := (rundir.Failure{Error: "of old"}).Write(spec.RunDir); err != nil {
		t.Fatal(err)
	}
	err := Runner{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}}.Run(t.Context(), staged(t, spec))
	if err == nil || strings.Contains(err.Error(), "of old") {
		t.Errorf("error %v", err)
	}
}

// TestFailsWithRequeueCode: a program that was not told to stop has failed, even with the exit code
// of one that has saved.
func TestFailsWithRequeueCode(t *testing.T) {
	for tasks, mpi := range map[int]string{1: "", 2: "mpirun.openmpi", 3: noMPI} {
		spec := newSpec(t, tasks, [2]string{"train", "exit 75"})
		var out, errOut bytes.Buffer
		err := Runner{Out: &out, Err: &errOut, LookPath: lookOnly(mpi)}.Run(t.Context(), staged(t, spec))
		var job *submit.JobError
		if !errors.As(err, &job) || job.Status.State != submit.Failed || job.Status.ExitCode != 1 {
			t.Errorf("%d ranks: error %v, want that it has failed\n%s", tasks, err, &errOut)
		}
		if said := out.String() + errOut.String(); !strings.Contains(said, rundir.Unasked) {
			t.Errorf("%d ranks: nothing says why:\n%s", tasks, said)
		}
	}
}
