package rank_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/procfs"

	"gonbatch/internal/proc"
	"gonbatch/internal/rundir"
	"gonbatch/submit"
)

// TestAlone: when the process that started a rank has been killed, the rank gets SIGTERM, once. It
// ends then, whenever that comes and even if the program ignores it.
func TestAlone(t *testing.T) {
	for _, tc := range []struct {
		program string
		times   int
	}{{"exec sleep 97", 30}, {"trap '' TERM; sleep 97 & sleep 97", 4}} {
		t.Run(tc.program, func(t *testing.T) {
			dir := newRun(t, 1, tc.program)
			for i := range tc.times {
				t.Run("", func(t *testing.T) {
					t.Parallel()
					endsAlone(t, dir, time.Duration(i)*20*time.Millisecond/time.Duration(tc.times), syscall.SIGTERM)
				})
			}
		})
	}
}

// TestNoSignal: a rank whose launcher has been killed ends, though nobody tells it.
func TestNoSignal(t *testing.T) {
	endsAlone(t, newRun(t, 1, "sleep 97 & exec sleep 97"), 500*time.Millisecond, 0)
}

// beParent starts a rank as submit does, prints the number of its process, and waits. The rank gets
// a signal when it dies, if that is not 0.
func beParent(signal syscall.Signal) {
	runtime.LockOSThread() // The kernel sends Pdeathsig when the thread ends, too.
	cmd := exec.Command(os.Args[0], os.Args[1:]...)
	cmd.Env = append(os.Environ(), asRank+"=1s")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: signal}
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	fmt.Println(cmd.Process.Pid)
	_ = cmd.Wait() // It is killed before.
}

// endsAlone starts a rank and kills its parent after a while.
func endsAlone(t *testing.T, dir rundir.Dir, after time.Duration, signal syscall.Signal) {
	t.Helper()
	cmd := newRank(dir)
	cmd.Env = append(cmd.Env, fmt.Sprintf("%s=%d", asParent, signal))
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	var group int
	_, err = fmt.Fscan(out, &group)
	time.Sleep(after)
	_ = cmd.Process.Kill() // It fails when the rank, and so the parent, has ended.
	_ = cmd.Wait()         // It was killed.
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Kill(-group, syscall.SIGKILL) //nolint:errcheck // it fails when all have ended
	allEnd(t, group)
}

// living are the processes of a group that have not ended. Others may stay until init waits for
// them.
func living(group int) []int {
	return slices.DeleteFunc(proc.Group(group), func(pid int) bool {
		process, err := procfs.NewProc(pid)
		if err != nil {
			return true
		}
		stat, err := process.Stat()
		return err != nil || stat.State == "Z"
	})
}

// TestLeftInStep: what a shell command leaves running in a step of SLURM ends with it, so that a
// job behaves as one on this machine. SLURM ends it only where it tracks processes by cgroups.
func TestLeftInStep(t *testing.T) {
	cmd := newRank(newRun(t, 1, "sleep 97 & exit 0"))
	cmd.Args = []string{cmd.Args[0], submit.RankName, submit.RankStep, cmd.Args[2], "shell"}
	cmd.Env = append(cmd.Env, "SLURM_JOB_ID=1", "SLURM_STEP_ID=0")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	allEnd(t, cmd.Process.Pid)
}

// TestUnreaped: a rank leaves nothing when its program has ended, even if nobody waits for it, as
// MPICH's proxy doesn't while anything holds its pipes.
func TestUnreaped(t *testing.T) {
	cmd := newRank(newRun(t, 1, "sleep 97 & touch $GONBATCH_RUN_DIR/runs; exec sleep 97"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	group := cmd.Process.Pid
	defer func() {
		_ = syscall.Kill(-group, syscall.SIGKILL) // It fails when all have ended.
		_ = cmd.Wait()                            // Its exit code doesn't matter.
	}()
	waitFor(t, filepath.Join(cmd.Args[2], "runs"))
	_ = cmd.Process.Signal(syscall.SIGTERM)
	allEnd(t, group)
}

// allEnd fails the test unless all processes of a group end soon.
func allEnd(t *testing.T, group int) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		left := living(group)
		if len(left) == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%v are left", left)
		}
	}
}

// TestToldOften: however often a rank is told to stop, it doesn't end before its program does.
func TestToldOften(t *testing.T) {
	cmd := newRank(newRun(t, 1, "trap '' TERM; touch $GONBATCH_RUN_DIR/runs; sleep 3; exit 5"))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, filepath.Join(cmd.Args[2], "runs"))
	for range 2000 {
		_ = cmd.Process.Signal(syscall.SIGUSR1) // It fails when the rank has ended, which is found below.
		time.Sleep(100 * time.Microsecond)
	}
	_ = cmd.Wait() // The exit code says how it ended.
	if code := cmd.ProcessState.ExitCode(); code != 5 {
		t.Errorf("the rank ended with exit code %d, want the program's 5", code)
	}
}
