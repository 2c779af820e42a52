package estimate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"gonbatch/internal/forecast"
	"gonbatch/internal/plugin"
	"gonbatch/internal/rundir"
	"gonbatch/submit"
	"gonbatch/submit/scratch"
)

// Program is what is asked.
type Program struct {
	Path string
	Cell rundir.Cell
	Dir  string // Dir is the folder that it runs in.
	// Env is set in addition to the cell's own, which takes precedence.
	Env map[string]string
	Limits
}

// Limits end a program that does not come to its first training step.
type Limits struct {
	// Time is how long it may run; 0 is no limit.
	Time time.Duration
	// PlainSteps is that of forecast.Question.
	PlainSteps int
}

// PlainSteps is how often a program may change its variables without averaging gradients, unless
// the user wants another number.
const PlainSteps = 100

// grace is how long a program has to end when the user doesn't want to wait.
const grace = 5 * time.Second

// ask runs the program up to its first training step, with another batch size if one is given.
func (p Program) ask(ctx context.Context, shell submit.Shell, q forecast.Question) (answer forecast.Answer, err error) {
	dir, err := scratch.Make(scratch.Forecast)
	if err != nil {
		return answer, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	file := filepath.Join(dir, "question.json")
	q.PlainSteps = p.PlainSteps
	ctx, end := p.limited(ctx)
	defer end()
	defer p.sayWaiting(shell)()
	if err := rundir.WriteJSON(file, q); err != nil {
		return answer, err
	}
	if err := p.run(ctx, shell, file); err != nil {
		return answer, p.explain(ctx, err)
	}
	if err := rundir.ReadJSON(file, &q); err != nil {
		return answer, err
	}
	switch {
	case q.Answer == nil:
		return answer, fmt.Errorf("the program of cell %s ended without a training step: check --target needs one made with package trainer or World.Optimizer", p.Cell.Name)
	case q.Answer.Error != "":
		return answer, errors.New(q.Answer.Error)
	}
	return *q.Answer, nil
}

// limited returns a context that ends when the program has had its time.
func (p Program) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	if p.Time == 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, p.Time, fmt.Errorf("the program of cell %s has not reached a training step of package trainer or World.Optimizer in %s; --timeout gives it more time",
		p.Cell.Name, p.Time))
}

// silence is how long a program may run before the user is told what it does.
const silence = 30 * time.Second

// sayWaiting says what the program does, at first after the silence, until the function that it
// returns is called.
func (p Program) sayWaiting(shell submit.Shell) (end func()) {
	started, done := time.Now(), make(chan struct{})
	go func() {
		for wait := silence; ; wait *= 2 {
			select {
			case <-time.After(wait):
				fmt.Fprintf(shell.Err, "submit: cell %s has run for %s; it ends at its first training step with package trainer or World.Optimizer (Ctrl-C ends it now)\n",
					p.Cell.Name, time.Since(started).Round(time.Second))
			case <-done:
				return
			}
		}
	}()
	return func() { close(done) }
}

// explain returns why the program failed. Ctrl-C also reaches the program, which may end first.
func (p Program) explain(ctx context.Context, err error) error {
	if exit := new(exec.ExitError); errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGINT {
		select {
		case <-ctx.Done():
		case <-time.After(grace):
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return fmt.Errorf("the program of cell %s failed before its first training step: %w", p.Cell.Name, err)
}

// env are the program's own variables; the later of two counts.
func (p Program) env() []rundir.Var {
	return slices.Concat(rundir.SortedVars(p.Env), rundir.SortedVars(p.Cell.Env))
}

// run runs the program to its end. What it prints is for people.
func (p Program) run(ctx context.Context, shell submit.Shell, file string) error {
	cmd := exec.CommandContext(ctx, p.Path, p.Cell.Args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.Dir, shell.Err, shell.Err
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = grace
	env := slices.Concat(plugin.BesideCUDA(submit.CleanEnviron(shell.Environ)), []string{
		rundir.EnvForecast + "=" + file, rundir.EnvPlatform + "=cpu", rundir.EnvDevices + "=1", rundir.EnvCell + "=" + p.Cell.Name,
	})
	for _, v := range p.env() {
		env = append(env, v.String())
	}
	cmd.Env = env
	return cmd.Run()
}
