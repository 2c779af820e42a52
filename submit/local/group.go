package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

// grace is how long a process group has to end after a signal before it is killed.
const grace = 10 * time.Second

// runGroup runs cmd in a process group of its own and returns its exit code: 128 plus the signal that ended it, as a
// shell says. SIGINT and SIGTERM that reach this process go on to the group; when ctx ends the group gets SIGTERM. All
// that is left of the group when cmd has ended is killed, and cmd ends if this process is killed.
func runGroup(ctx context.Context, cmd *exec.Cmd) (int, error) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	defer signal.Stop(signals)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	cmd.WaitDelay = time.Second
	started, done := make(chan error, 1), make(chan error, 1)
	go func() {
		// The kernel sends Pdeathsig when the thread that started the process ends, so the thread stays with it.
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
	group := -cmd.Process.Pid
	defer syscall.Kill(group, syscall.SIGKILL)
	return exitCode(waitGroup(ctx, group, signals, done))
}

// waitGroup waits for the end of a process group's leader and passes on what should end it earlier.
func waitGroup(ctx context.Context, group int, signals <-chan os.Signal, done <-chan error) error {
	var kill <-chan time.Time
	cancelled := ctx.Done()
	end := func(sig syscall.Signal) {
		syscall.Kill(group, sig)
		if kill == nil {
			kill = time.After(grace)
		}
	}
	for {
		select {
		case err := <-done:
			return err
		case sig := <-signals:
			end(sig.(syscall.Signal))
		case <-cancelled:
			end(syscall.SIGTERM)
			cancelled = nil
		case <-kill:
			syscall.Kill(group, syscall.SIGKILL)
		}
	}
}

// exitCode makes an exit code of what Wait returned; an error that says nothing about the process stays one.
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
