package magic

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/google/shlex"
)

// stopTime is how long the submit command may take to end when it is told to.
const stopTime = 5 * time.Second

// command runs the submit command and prints what it prints.
func (m *Magics) command(ctx context.Context, s Session, args []string) error {
	return m.run(ctx, s, args, func(string) {})
}

func (m *Magics) print(ctx context.Context, s Session, verb, args string) error {
	words, err := shlex.Split(args)
	if err != nil {
		return err
	}
	return m.command(ctx, s, append([]string{verb}, words...))
}

// logs prints a rank's log.
func (m *Magics) logs(ctx context.Context, s Session, args string) error {
	words, err := shlex.Split(args)
	if err != nil {
		return err
	}
	flags, name := []string{"logs"}, ""
	for i := 0; i < len(words); i++ {
		switch {
		case words[i] == "--rank" && i+1 < len(words):
			flags = append(flags, words[i], words[i+1])
			i++
		case strings.HasPrefix(words[i], "-"):
			flags = append(flags, words[i])
		default:
			name = words[i]
		}
	}
	job, err := m.jobOf(name)
	if err != nil {
		return fmt.Errorf("%%logs: %w", err)
	}
	return m.command(ctx, s, append(flags, job.target()))
}

// target is what the submit command finds the job by.
func (j Job) target() string {
	if j.Dir != "" {
		return j.Dir
	}
	return j.ID
}

// wait waits for a job's end.
func (m *Magics) wait(ctx context.Context, s Session, args string) error {
	job, err := m.jobOf(strings.TrimSpace(args))
	if err != nil {
		return fmt.Errorf("%%wait: %w", err)
	}
	state, err := m.watch(ctx, s, job)
	switch {
	case err != nil:
		return fmt.Errorf("%%wait: %w", err)
	case s.Interrupted():
		s.Print("job " + job.ID + " goes on\n")
		return nil
	case !state.succeeded():
		return fmt.Errorf("job %s: %s", job.ID, state.explanation())
	}
	return nil
}

// follow keeps the card of a job up to date while the user does other things.
func (m *Magics) follow(ctx context.Context, s Session, job Job) {
	first, err := m.ask(ctx, job)
	if err != nil {
		s.Print(err.Error() + "\n")
		return
	}
	s.Display(job.cardID(), newCard(first))
	if first.ended() {
		return
	}
	go func() { _, _ = m.update(ctx, s, first.Job, func() bool { return false }) }()
}

// watch shows the card until the job has ended or the user interrupts.
func (m *Magics) watch(ctx context.Context, s Session, job Job) (state, error) {
	first, err := m.ask(ctx, job)
	if err != nil {
		return first, err
	}
	s.Display(first.Job.cardID(), newCard(first))
	if first.ended() {
		return first, nil
	}
	return m.update(ctx, s, first.Job, s.Interrupted)
}

// update shows each change of the job until it has ended, or stop says so.
func (m *Magics) update(ctx context.Context, s Session, job Job, stop func() bool) (last state, err error) {
	shown := ""
	for !stop() {
		select {
		case <-ctx.Done():
			return last, ctx.Err()
		case <-time.After(m.opts.Poll):
		}
		// A scheduler that is busy for a moment is asked again.
		now, askErr := m.ask(ctx, job)
		if askErr != nil {
			if err = errors.Join(err, askErr); ctx.Err() != nil {
				return last, ctx.Err()
			}
			continue
		}
		last, err = now, nil
		if card := newCard(now); fmt.Sprint(card) != shown {
			shown = fmt.Sprint(card)
			s.Update(job.cardID(), card)
		}
		if now.ended() {
			return now, nil
		}
	}
	return last, err
}

func (j Job) cardID() string { return "gonbatch-job-" + j.ID }

// ask asks the submit command for the job's state.
func (m *Magics) ask(ctx context.Context, job Job) (state, error) {
	cmd := exec.CommandContext(ctx, m.opts.Program, "status", job.target())
	cmd.Dir, cmd.Env = m.opts.Dir(), m.opts.Environ
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) && len(exit.Stderr) > 0 {
			err = errors.New(strings.TrimSpace(string(exit.Stderr)))
		}
		return state{Job: job}, err
	}
	return readState(job, string(out)), nil
}
