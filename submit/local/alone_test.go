package local

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"gonbatch/internal/cluster"
	"gonbatch/internal/proc"
	"gonbatch/submit"
)

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

// endsAlone starts a launcher and sends it SIGTERM after a while.
func endsAlone(t *testing.T, spec submit.JobSpec, after time.Duration) {
	t.Helper()
	cmd := exec.Command(spec.RunDir.Launcher(), "one")
	cmd.Env = append(submit.CleanEnviron(os.Environ()), cluster.TorchrunVariables(0, 2, 1, "x")...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	group := cmd.Process.Pid
	defer syscall.Kill(-group, syscall.SIGKILL) //nolint:errcheck // it fails when all have ended
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // Its exit code doesn't matter.
		close(ended)
	}()
	time.Sleep(after)
	_ = syscall.Kill(group, syscall.SIGTERM) // It fails when the launcher has ended.
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		t.Fatalf("the launcher that got SIGTERM after %s still runs", after)
	}
	for end := time.Now().Add(5 * time.Second); len(proc.Group(group)) > 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after %s: %v are left", after, proc.Group(group))
		}
	}
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
		left := proc.Group(group)
		if len(left) == 1 && left[0] == group {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%v are left, want the launcher alone, which nobody waits for", left)
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
