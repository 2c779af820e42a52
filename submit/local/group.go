package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"gonbatch/submit"
)

// grace is how long a process group has to save and end after a signal before it is killed.
var grace = time.Minute

// stop tells a process group to save and stop.
type stop func(group int)

// terminate sends SIGTERM to all processes of a group.
func terminate(group int) { _ = syscall.Kill(-group, syscall.SIGTERM) }

// tellLauncher sends SIGUSR1 only to the first process of a group: to launch.sh, which tells the
// rank's program, or to mpirun, which would kill its ranks at a SIGTERM but passes this signal on
// to launch.sh.
func tellLauncher(group int) { _ = syscall.Kill(group, syscall.SIGUSR1) }

// runGroup runs cmd in its own process group and returns its exit code, or 128 plus the signal that
// ended it, as in a shell. When ctx ends, tell tells the group to stop; the group is killed after
// the grace time, or at once on another interrupt. When cmd has ended, the rest of the group is
// killed. cmd gets SIGTERM if this process dies. If there is a guardLog, a guard ends the whole
// group then, and says so in this log.
func runGroup(ctx context.Context, cmd *exec.Cmd, tell stop, guardLog *os.File) (int, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	cmd.WaitDelay = time.Second
	started, done := make(chan error, 1), make(chan error, 1)
	go func() {
		// The kernel sends Pdeathsig when the thread that started the process ends, so the thread
		// stays with it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			done <- cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		return 0, err
	}
	group := cmd.Process.Pid
	if guardLog != nil {
		g, err := startGuard(group, guardLog)
		if err != nil {
			killTree(group)
			return 0, errors.Join(err, <-done)
		}
		defer g.close()
	}
	defer syscall.Kill(-group, syscall.SIGKILL) //nolint:errcheck // it fails when all have ended
	return exitCode(waitGroup(ctx, group, tell, done))
}

// retell is the time after which a group is told again to stop: a program that was just starting
// may have missed the signal.
const retell = 5 * time.Second

// waitGroup waits for the end of a process group's leader, and ends the group when ctx ends.
func waitGroup(ctx context.Context, group int, tell stop, done <-chan error) error {
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	var interrupt submit.Interrupt
	_ = errors.As(context.Cause(ctx), &interrupt)
	late, again := time.After(grace), time.NewTicker(retell)
	defer again.Stop()
	for {
		tell(group)
		select {
		case err := <-done:
			return err
		case <-again.C:
			continue
		case <-interrupt.Again:
		case <-late:
		}
		killTree(group)
		return <-done
	}
}

// exitCode returns the exit code in an error of Wait. It returns an error that doesn't come from
// the process.
func exitCode(err error) (int, error) {
	var exit *exec.ExitError
	switch {
	case err == nil, errors.Is(err, exec.ErrWaitDelay):
		return 0, nil
	case !errors.As(err, &exit):
		return 0, err
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	if !ok {
		return 0, fmt.Errorf("unexpected status %T: %w", exit.Sys(), err)
	}
	if status.Signaled() {
		return 128 + int(status.Signal()), nil
	}
	return status.ExitStatus(), nil
}
