package local

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/procfs"

	"gonbatch/internal/cluster"
	"gonbatch/internal/proc"
	"gonbatch/submit"
)

// parentOf names the launcher that this process starts, as submit does, until it is killed.
const parentOf = "TEST_PARENT_OF"

func TestMain(m *testing.M) {
	if launcher := os.Getenv(parentOf); launcher != "" {
		beParent(launcher)
	}
	os.Exit(m.Run())
}

// beParent prints the number of the launcher's process.
func beParent(launcher string) {
	runtime.LockOSThread() // The kernel sends Pdeathsig when the thread ends, too.
	cmd := exec.Command(launcher, "one")
	cmd.Env = append(submit.CleanEnviron(os.Environ()), cluster.TorchrunVariables(0, 2, 1, "x")...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	fmt.Println(cmd.Process.Pid)
	_ = cmd.Wait() // It is killed before.
}

// TestAlone: when submit has been killed, its launchers get SIGTERM, once. They end then, whenever
// it comes and even if the program ignores it.
func TestAlone(t *testing.T) {
	before := grace
	t.Cleanup(func() { grace = before })
	grace = time.Second
	for _, tc := range []struct {
		program string
		times   int
	}{{"exec sleep 97", 30}, {"trap '' TERM; sleep 97 & sleep 97", 4}} {
		t.Run(tc.program, func(t *testing.T) {
			spec := newSpec(t, 2, [2]string{"one", tc.program})
			s, err := Runner{LookPath: lookOnly(noMPI), Err: t.Output()}.start(t.Context(), spec)
			if err != nil {
				t.Fatal(err)
			}
			for i := range tc.times {
				t.Run("", func(t *testing.T) {
					t.Parallel()
					endsAlone(t, s.spec, time.Duration(i)*20*time.Millisecond/time.Duration(tc.times))
				})
			}
		})
	}
}

// endsAlone starts a launcher and kills its parent after a while.
func endsAlone(t *testing.T, spec submit.JobSpec, after time.Duration) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), parentOf+"="+spec.RunDir.Launcher())
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
	_ = cmd.Process.Kill() // It fails when the launcher, and so the parent, has ended.
	_ = cmd.Wait()         // It was killed.
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Kill(-group, syscall.SIGKILL) //nolint:errcheck // it fails when all have ended
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		left := living(group)
		if len(left) == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("after %s: %v are left", after, left)
		}
	}
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

// TestUnreaped: a launcher leaves nothing when its program has ended, even if nobody waits for the
// launcher, as MPICH's proxy doesn't while anything holds its pipes.
func TestUnreaped(t *testing.T) {
	spec := newSpec(t, 2, [2]string{"one", "exec sleep 97"})
	s, err := Runner{LookPath: lookOnly(noMPI), Err: t.Output()}.start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(s.spec.RunDir.Launcher(), "one")
	cmd.Env = append(submit.CleanEnviron(os.Environ()), cluster.TorchrunVariables(0, 2, 1, "x")...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	group := cmd.Process.Pid
	defer func() {
		_ = syscall.Kill(-group, syscall.SIGKILL) // It fails when all have ended.
		_ = cmd.Wait()                            // Its exit code doesn't matter.
	}()
	time.Sleep(200 * time.Millisecond) // Until it has set its traps.
	_ = cmd.Process.Signal(syscall.SIGTERM)
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		left := living(group)
		if len(left) == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%v are left", left)
		}
	}
}

// TestToldOften: however often a launcher is told to stop, it doesn't end before its program does.
func TestToldOften(t *testing.T) {
	spec := newSpec(t, 2, [2]string{"one", "trap '' TERM; sleep 3; exit 5"})
	s, err := Runner{LookPath: lookOnly(noMPI), Err: t.Output()}.start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(s.spec.RunDir.Launcher(), "one")
	cmd.Env = append(submit.CleanEnviron(os.Environ()), cluster.TorchrunVariables(0, 2, 1, "x")...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(200 * time.Millisecond) // Until both have set their traps.
	for range 2000 {
		_ = cmd.Process.Signal(syscall.SIGUSR1) // It fails when the launcher has ended, which is found below.
		time.Sleep(100 * time.Microsecond)
	}
	_ = cmd.Wait() // The exit code says how it ended.
	if code := cmd.ProcessState.ExitCode(); code != 5 {
		t.Errorf("the launcher ended with exit code %d, want the program's 5", code)
	}
}
