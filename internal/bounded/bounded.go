// Package bounded runs the programs that tests start, and ends those that hang. It is for tests
// only.
//
//	out, err := bounded.CombinedOutput(exec.Command("python3", "client.py"))
//
// os/exec waits for as long as any process, even a forgotten one, holds the command's output open.
// Here, after Limit, every process that the command has started shows where it is, which Go
// programs and Python do on SIGABRT, and is then killed.
package bounded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"
	"time"

	"gonbatch/internal/proc"
)

// Limit is how long a command may take, its forgotten processes included. It is generous: a busy
// machine takes minutes for what takes seconds otherwise.
const Limit = 20 * time.Minute

// Times around the end of a command that hangs.
const (
	showTime  = 10 * time.Second // for processes to show where they are, or to end
	killPause = 100 * time.Millisecond
)

// count tells the commands of this process apart.
var count atomic.Int64

// Run runs a command as cmd.Run does, and ends it and all that it has started after Limit, which
// is an error.
func Run(cmd *exec.Cmd) error {
	ctx, cancel := context.WithTimeout(context.Background(), Limit)
	defer cancel()
	return RunContext(ctx, cmd)
}

// Output is cmd.Output with the limit of Run. As there, an *exec.ExitError has what the command
// wrote to standard error, unless that goes elsewhere.
func Output(cmd *exec.Cmd) ([]byte, error) {
	var stdout, stderr bytes.Buffer
	cmd.Stdout = &stdout
	if cmd.Stderr == nil {
		cmd.Stderr = &stderr
	}
	err := Run(cmd)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		exit.Stderr = stderr.Bytes()
	}
	return stdout.Bytes(), err
}

// CombinedOutput is cmd.CombinedOutput with the limit of Run.
func CombinedOutput(cmd *exec.Cmd) ([]byte, error) {
	var both bytes.Buffer
	cmd.Stdout, cmd.Stderr = &both, &both
	err := Run(cmd)
	return both.Bytes(), err
}

// Mark marks a command whose processes must not outlive it: mpirun, say, and its ranks. After the
// command has ended, call end: it waits a few seconds for the rest to end, kills it, and returns
// how many processes it killed.
func Mark(cmd *exec.Cmd) (end func() (killed int)) {
	mark := newMark()
	cmd.Env = append(cmd.Environ(), mark)
	return func() (killed int) {
		untilNone(mark, 0)
		return untilNone(mark, syscall.SIGKILL)
	}
}

// newMark returns a variable, NAME=VALUE, for the processes of one command.
func newMark() string { return fmt.Sprintf("BOUNDED_%d_%d=1", os.Getpid(), count.Add(1)) }

// RunContext is Run with the limit of a context.
func RunContext(ctx context.Context, cmd *exec.Cmd) error {
	mark, began := newMark(), time.Now()
	cmd.Env = append(cmd.Environ(), mark, "PYTHONFAULTHANDLER=1")
	if deadline, ok := ctx.Deadline(); ok && cmd.WaitDelay == 0 {
		cmd.WaitDelay = time.Until(deadline) + 2*showTime // for a process without the mark
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	var took time.Duration
	ended := make(chan int, 1)
	stop := context.AfterFunc(ctx, func() {
		took = time.Since(began).Round(time.Second / 10)
		ended <- end(mark)
	})
	waited := make(chan struct{})
	var err error
	go func() {
		defer close(waited)
		err = cmd.Wait()
	}()
	running := 0
	select {
	case <-waited:
		if stop() {
			return err
		}
		running = <-ended
	case running = <-ended:
		select {
		case <-waited:
		case <-time.After(showTime): // It waits in the kernel, as for a device that hangs.
			return fmt.Errorf("%s: after %v, %d of its processes can't be ended, even by SIGKILL (%w)", cmd, took, running, context.Cause(ctx))
		}
	}
	return fmt.Errorf("%s: %d of its processes still ran after %v and were ended: where each was is in the output (%w)", cmd, running, took, err)
}

// end ends all processes with the mark in their environment and returns their number.
func end(mark string) int {
	found := signal(mark, syscall.SIGABRT)
	untilNone(mark, 0)
	untilNone(mark, syscall.SIGKILL)
	return found
}

// untilNone sends a signal to the processes with the mark again and again, until there are none or
// showTime has passed, and returns how many there were.
func untilNone(mark string, s syscall.Signal) (most int) {
	for begin := time.Now(); time.Since(begin) < showTime; time.Sleep(killPause) {
		n := signal(mark, s)
		if n == 0 {
			break
		}
		most = max(most, n)
	}
	return most
}

// signal sends a signal to all processes with the mark and returns their number.
func signal(mark string, s syscall.Signal) (sent int) {
	for pid := range proc.With(mark) {
		if syscall.Kill(pid, s) == nil {
			sent++
		}
	}
	return sent
}

// WriteProgram writes a program or a script that tests start. A process that is being started at
// the same time doesn't inherit the open file: otherwise, the program would be busy until then, and
// could not be started.
func WriteProgram(path, text string) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(path, []byte(text), 0o755)
}
