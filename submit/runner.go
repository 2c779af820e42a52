package submit

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Runner runs external commands to their end and returns their standard output. It may be used
// concurrently. Tests provide their own.
type Runner interface {
	// Run blocks until the command or ctx ends. If the command fails, the error is a *CommandError.
	Run(ctx context.Context, name string, args ...string) (stdout []byte, err error)
}

// commandTimeout is how long ExecRunner waits for a command if its Timeout is zero. SLURM's
// commands try for minutes when the controller is down.
const commandTimeout = 30 * time.Second

// ExecRunner runs commands found on PATH.
type ExecRunner struct {
	// Timeout bounds each command whose context has no deadline; zero is CommandTimeout.
	Timeout time.Duration
	// Env is the commands' environment; nil is this process's.
	Env []string
}

var _ Runner = ExecRunner{}

// CommandError is the error of a failed external command.
type CommandError struct {
	// Name is the command; Args are its arguments.
	Name string
	Args []string
	// Output is everything the command wrote to standard error, or else to standard output.
	Output string
	// Err is the cause: an *exec.ExitError, exec.ErrNotFound, context.DeadlineExceeded, ...
	Err error
}

// Error names the command and quotes its output.
func (e *CommandError) Error() string {
	switch {
	case errors.Is(e.Err, exec.ErrNotFound):
		return fmt.Sprintf("%s is not on PATH", e.Name)
	case errors.Is(e.Err, context.DeadlineExceeded):
		return fmt.Sprintf("%s did not answer in time", e.Name)
	case e.Output != "":
		return fmt.Sprintf("%s: %s", e.Name, e.Output)
	}
	return fmt.Sprintf("%s: %v", e.Name, e.Err)
}

// Unwrap returns the cause.
func (e *CommandError) Unwrap() error { return e.Err }

// Run runs name with args, without standard input. The command has its own process group, so a
// Ctrl-C in the terminal reaches it only through ctx.
func (r ExecRunner) Run(ctx context.Context, name string, args ...string) ([]byte, error) {
	if _, limited := ctx.Deadline(); !limited {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, cmp.Or(r.Timeout, commandTimeout))
		defer cancel()
	}
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Env = r.Env
	cmd.WaitDelay = time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if err == nil {
		return stdout.Bytes(), nil
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return stdout.Bytes(), &CommandError{Name: name, Args: args, Output: words(stderr.String(), stdout.String()), Err: err}
}

// Remembering is a Runner that runs some commands, by their names, only once for each list of
// arguments: their answers don't change while submit runs. Failures are not remembered.
type Remembering struct {
	Runner
	Commands []string

	answers sync.Map
}

// Run returns the answer of an earlier call, or runs the command.
func (r *Remembering) Run(ctx context.Context, name string, args ...string) ([]byte, error) {
	if !slices.Contains(r.Commands, name) {
		return r.Runner.Run(ctx, name, args...)
	}
	key := fmt.Sprintf("%q", append([]string{name}, args...))
	if answer, ok := r.answers.Load(key); ok {
		return answer.([]byte), nil
	}
	out, err := r.Runner.Run(ctx, name, args...)
	if err == nil {
		r.answers.Store(key, out)
	}
	return out, err
}

// ProcessCode returns the exit code of a process that has ended, or 128 plus the signal that ended
// it, as in a shell.
func ProcessCode(p *os.ProcessState) int {
	if status, ok := p.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return p.ExitCode()
}

// words returns the first text that is not blank, trimmed.
func words(texts ...string) string {
	for _, text := range texts {
		if text = strings.TrimSpace(text); text != "" {
			return text
		}
	}
	return ""
}
