package local

import (
	"context"
	"errors"
	"os/exec"
	"runtime"
	"slices"
	"syscall"
	"time"

	"gonbatch/internal/proc"
	"gonbatch/submit"
)

// grace is how long a process group has to save and end after a signal before it is killed.
const grace = time.Minute

// tell tells the first process of a group to save and stop: a rank, or mpirun, which would kill its
// ranks at a SIGTERM but passes this signal on to them.
func tell(group int) { _ = syscall.Kill(group, syscall.SIGUSR1) }

// runGroup runs cmd, a rank or its launcher, in its own process group and returns its exit code, or
// 128 plus the signal that ended it, as in a shell. When ctx ends, it is told to stop; the group is
// killed after the grace time, or at once on another interrupt. When cmd has ended, the rest of the
// group is killed. cmd gets SIGTERM if this process dies, which makes a rank end its program.
func runGroup(ctx context.Context, cmd *exec.Cmd) (int, error) {
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
	defer syscall.Kill(-group, syscall.SIGKILL) //nolint:errcheck // it fails when all have ended
	return exitCode(waitGroup(ctx, group, done))
}

// retell is the time after which a group is told again to stop: a program that was just starting
// may have missed the signal.
const retell = 5 * time.Second

// waitGroup waits for the end of a process group's leader, and ends the group when ctx ends.
func waitGroup(ctx context.Context, group int, done <-chan error) error {
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
	return submit.ProcessCode(exit.ProcessState), nil
}

// killTree kills a process group and the groups that its processes have started: Open MPI's mpirun
// gives each rank its own group.
func killTree(group int) {
	groups := []int{group}
	for _, pid := range proc.Group(group) {
		for _, below := range proc.Below(pid) {
			if of, err := syscall.Getpgid(below); err == nil && !slices.Contains(groups, of) {
				groups = append(groups, of)
			}
		}
	}
	for _, g := range groups {
		_ = syscall.Kill(-g, syscall.SIGKILL) // It fails when all have ended.
	}
}
