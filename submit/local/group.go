package local

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"gonbatch/submit"
)

// grace is how long a process group has to end after a signal before it is killed.
const grace = 10 * time.Second

// runGroup runs cmd in a process group of its own and returns its exit code: 128 plus the signal that ended it, as a
// shell says. When ctx ends, the group gets the signal of a submit.Interrupt, else SIGTERM. All that is left of the group
// when cmd has ended is killed, and cmd gets SIGTERM if this process dies.
func runGroup(ctx context.Context, cmd *exec.Cmd) (int, error) {
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
	return exitCode(waitGroup(ctx, group, done))
}

// waitGroup waits for the end of a process group's leader, and ends it when ctx ends.
func waitGroup(ctx context.Context, group int, done <-chan error) error {
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		syscall.Kill(group, signalOf(ctx))
	}
	select {
	case err := <-done:
		return err
	case <-time.After(grace):
		syscall.Kill(group, syscall.SIGKILL)
		return <-done
	}
}

// signalOf is the signal that ended ctx and that the group gets: what a person sent, else SIGTERM.
func signalOf(ctx context.Context) syscall.Signal {
	var interrupt submit.Interrupt
	if errors.As(context.Cause(ctx), &interrupt) && interrupt.Signal != syscall.SIGPIPE {
		return interrupt.Signal
	}
	return syscall.SIGTERM
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
