package magic

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/shlex"
)

// stopTime is how long the submit command may take to end after it is told to.
const stopTime = 5 * time.Second

// command runs the submit command and prints its output.
func (m *Magics) command(ctx context.Context, s Session, args []string) error {
	return m.run(ctx, s, args, func(line string) string { return line })
}

// jobs lists the runs.
func (m *Magics) jobs(ctx context.Context, s Session, args string) error {
	words, err := shlex.Split(args)
	if err != nil {
		return fmt.Errorf("%%jobs %s: %w", args, err)
	}
	return m.command(ctx, s, append([]string{"status"}, words...))
}

// logs prints a rank's log: of "[--rank N] [FLAGS] [RUN]", only the run is looked up here.
func (m *Magics) logs(ctx context.Context, s Session, args string) error {
	words, err := shlex.Split(args)
	if err != nil {
		return fmt.Errorf("%%logs %s: %w", args, err)
	}
	named := -1
	for i, word := range words {
		switch {
		case strings.HasPrefix(word, "-") || i > 0 && words[i-1] == "--rank":
		case named >= 0:
			return fmt.Errorf("%%logs %s: %w", args, errOneJob)
		default:
			named = i
		}
	}
	if len(words) > 0 && words[len(words)-1] == "--rank" {
		return fmt.Errorf("%%logs %s: want the number of a rank, as in --rank 3", args)
	}
	if named < 0 {
		words, named = append(words, ""), len(words)
	}
	job, err := m.jobOf(words[named])
	if err != nil {
		return fmt.Errorf("%%logs: %w", err)
	}
	words[named] = job.target()
	return m.command(ctx, s, append([]string{"logs"}, words...))
}

// errOneJob is the error of a magic that got the names of several jobs.
var errOneJob = errors.New("give at most one run: its job id or name, as %jobs lists them")

// oneJob returns the job for a magic whose only argument is a job.
func (m *Magics) oneJob(magic, args string) (Job, error) {
	if len(strings.Fields(args)) > 1 {
		return Job{}, fmt.Errorf("%%%s %s: %w", magic, args, errOneJob)
	}
	job, err := m.jobOf(strings.TrimSpace(args))
	if err != nil {
		return job, fmt.Errorf("%%%s: %w", magic, err)
	}
	return job, nil
}

// target returns the argument by which the submit command finds the job.
func (j Job) target() string {
	if j.Dir != "" {
		return j.Dir
	}
	return j.ID
}

// wait waits until a job ends.
func (m *Magics) wait(ctx context.Context, s Session, args string) error {
	job, err := m.oneJob("wait", args)
	if err != nil {
		return err
	}
	state, err := m.watch(ctx, s, job)
	switch {
	case err != nil:
		return fmt.Errorf("%%wait: %w", err)
	case s.Interrupted():
		s.Print("job " + job.ID + " goes on\n")
		return nil
	case !state.completed():
		return errors.New(state.explanation())
	}
	return nil
}

// follow keeps the card of a job up to date in the background.
func (m *Magics) follow(ctx context.Context, s Session, job Job) {
	o, first, err := m.show(ctx, s, job)
	if err != nil {
		s.Print(err.Error() + "\n")
		return
	}
	if first.ended() {
		return
	}
	go func() { _, _ = o.update(ctx, s, func() bool { return false }) }()
}

// watch shows the card until the job has ended or the user interrupts.
func (m *Magics) watch(ctx context.Context, s Session, job Job) (state, error) {
	o, first, err := m.show(ctx, s, job)
	if err != nil || first.ended() {
		return first, err
	}
	return o.update(ctx, s, s.Interrupted)
}

// show shows the card of a job for the first time.
func (m *Magics) show(ctx context.Context, s Session, job Job) (*observer, state, error) {
	o := m.observe(job)
	first, err := o.look(ctx)
	if err == nil {
		s.Display(job.cardID(), newCard(first))
	}
	return o, first, err
}

// update shows each change of the job until it has ended, or stop returns true.
func (o *observer) update(ctx context.Context, s Session, stop func() bool) (last state, err error) {
	shown := ""
	for !stop() {
		select {
		case <-ctx.Done():
			return last, ctx.Err()
		case <-time.After(o.m.opts.Poll):
		}
		// The scheduler may just be busy: ask again.
		now, askErr := o.look(ctx)
		if ctx.Err() != nil {
			return last, ctx.Err()
		}
		if err = askErr; err != nil {
			continue
		}
		if last = now; now.Run.Error != "" {
			err = errors.New(now.Run.Error)
		}
		if card := newCard(now); fmt.Sprint(card) != shown {
			shown = fmt.Sprint(card)
			s.Update(o.job.cardID(), card)
		}
		if now.ended() {
			return now, nil
		}
	}
	return last, err
}

func (j Job) cardID() string { return "gonbatch-job-" + j.ID }

// cancel cancels a job.
func (m *Magics) cancel(ctx context.Context, s Session, args string) error {
	job, err := m.oneJob("cancel", args)
	if err != nil {
		return err
	}
	return m.command(ctx, s, []string{"cancel", job.target()})
}
