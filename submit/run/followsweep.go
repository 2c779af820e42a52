package run

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"gonbatch/internal/plural"
	"gonbatch/internal/rundir"
	"gonbatch/submit"
)

// sweepPoll is the time between two looks at a sweep's jobs, and sweepPollMost when nothing
// changes.
const (
	sweepPoll     = time.Second
	sweepPollMost = 15 * time.Second
)

// lanes count the jobs of a sweep that have not ended. Those of a lane have the same name in the
// queue, and run one after another (SLURM's singleton), so that as many run at the same time as
// there are lanes. Without any, all may.
type lanes struct {
	sweep string
	jobs  []int
}

// lanesOf returns the lanes of a sweep whose runs have been looked at.
func lanesOf(sweep string, atOnce int, runs []swept) lanes {
	l := lanes{sweep, make([]int, atOnce)}
	for _, r := range runs {
		if !r.taken() || r.status.State.Ended() {
			continue
		}
		spec, err := submit.ReadSpec(r.Dir) // Without it, the run can't be resumed either.
		if lane, ok := strings.CutPrefix(spec.QueueName, sweep+"."); ok && err == nil {
			if n, err := strconv.Atoi(lane); err == nil && n >= 1 && n <= atOnce {
				l.jobs[n-1]++
			}
		}
	}
	return l
}

// atOnceOf returns how many jobs of a run's sweep may run at the same time; 0 for all.
func atOnceOf(m rundir.Manifest) int {
	n, _ := m.Options[sweepAtOnceOption].(float64)
	return int(n)
}

// join puts a job into the lane with the fewest jobs.
func (l lanes) join(spec *submit.JobSpec) error {
	if len(l.jobs) == 0 {
		return nil
	}
	at := slices.Index(l.jobs, slices.Min(l.jobs))
	l.jobs[at]++
	spec.QueueName = fmt.Sprintf("%s.%d", l.sweep, at+1)
	if !slices.Contains(strings.Split(spec.Passed["dependency"], ","), singleton) {
		wait(spec, singleton)
	}
	return mayWait(*spec, "--at-once")
}

// singleton is the dependency of a job that waits for all earlier ones of its name.
const singleton = "singleton"

// swept is a run of a sweep with its status.
type swept struct {
	Run
	status submit.Status
}

// failed reports whether the run has ended and did not complete.
func (s swept) failed() bool { return s.status.State.Ended() && s.status.State != submit.Completed }

// lookAll looks at the runs of a sweep as they are now. A run whose status can't be found is
// Unknown, for the reason why.
func (rs *Runs) lookAll(ctx context.Context, runs []Run) (all []swept) {
	now, gone := slices.Clone(runs), map[string]bool{}
	for i, r := range runs {
		opened, err := rs.open(r.Dir)
		if err == nil {
			now[i] = opened
		}
		gone[r.Dir.Name()] = errors.Is(err, fs.ErrNotExist)
	}
	surveys := rs.surveys(ctx, now)
	for _, r := range now {
		if gone[r.Dir.Name()] {
			all = append(all, swept{r, submit.Status{State: submit.Lost, Explanation: "its run directory is gone"}})
			continue
		}
		r, status, err := rs.look(ctx, r, surveys)
		if err != nil {
			status = submit.Status{State: submit.Unknown, Reason: firstLine(err)}
		}
		all = append(all, swept{r, status})
	}
	return all
}

// queueSweep hands those runs of a sweep to their scheduler whose names are in left, and removes
// the names, until the scheduler takes no more jobs for now: that is full.
func (rs *Runs) queueSweep(ctx context.Context, all []swept, left map[string]bool, change func(Run) Changes, m Manner) (full, err error) {
	if len(left) == 0 {
		return nil, nil
	}
	queue := lanesOf(SweepOf(all[0].Manifest), atOnceOf(all[0].Manifest), all)
	for _, r := range all {
		if !left[r.Dir.Name()] {
			continue
		}
		c := change(r.Run)
		changeJob := c.Job
		c.Job = func(spec *submit.JobSpec) error {
			if rs.isOver(r.Run) {
				return errOver
			}
			return errors.Join(changeJob(spec), queue.join(spec))
		}
		s, err := rs.resume(ctx, r.Run, c, m)
		if errors.Is(err, submit.ErrQueueFull) {
			return err, nil
		}
		if err != nil && rs.isOver(r.Run) {
			delete(left, r.Dir.Name())
			continue
		}
		if err == nil {
			delete(left, r.Dir.Name())
		}
		if err == nil && !m.quiet {
			s.name = r.Dir.Path()
			err = rs.attend(ctx, s, m)
		}
		if err != nil {
			return nil, fmt.Errorf("run %s: %w", r.Dir.Name(), err)
		}
	}
	return nil, nil
}

// errOver is the error of a run that isOver.
var errOver = errors.New("another command has queued or cancelled it")

// isOver reports whether another command has queued or cancelled a run since it was opened.
func (rs *Runs) isOver(r Run) bool {
	now, err := rs.open(r.Dir)
	if err != nil {
		return false
	}
	if now.taken() {
		return now.Manifest.JobID != r.Manifest.JobID
	}
	return now.Manifest.Ended != nil && r.Manifest.Ended == nil
}

// unchanged are no changes of a job.
func unchanged(Run) Changes { return Changes{Job: func(*submit.JobSpec) error { return nil }} }

// followSweep says what becomes of a sweep's runs until all have ended. It queues those in left,
// with changes, as soon as their scheduler takes them. It returns an error unless all have
// completed. If ctx ends first, the jobs go on.
func (rs *Runs) followSweep(ctx context.Context, sweep string, left map[string]bool, change func(Run) Changes) error {
	pause, shown, told := sweepPoll, map[string]string{}, ""
	all, before := rs.OfSweep(sweep), map[string]*time.Time{}
	for _, r := range all {
		before[r.Dir.Name()] = r.Manifest.Ended
	}
	for {
		runs := rs.lookAll(ctx, all)
		done, failed, changed := 0, 0, false
		for _, r := range runs {
			name := r.Dir.Name()
			ended := r.Manifest.Ended
			over := ended != nil && before[name] != nil && ended.Equal(*before[name])
			switch {
			case ended != nil && !over, r.taken() && !r.status.State.Ended(), r.status.State == submit.Lost && !r.taken():
				delete(left, name) // Somebody has cancelled, queued or removed it.
			}
			if left[name] {
				continue
			}
			if r.status.State.Ended() {
				done++
			}
			if r.failed() {
				failed++
			}
			if text := r.status.String(); shown[name] != text && !over {
				shown[name], changed = text, true
				values, _ := valuesOf(r.Manifest)
				fmt.Fprintf(rs.Err, "%s: %s: %s\n", r.Job(), values, rundir.Printable(text))
			}
		}
		waiting := len(left)
		_, err := rs.queueSweep(ctx, runs, left, change, Manner{planned: true, quiet: true})
		switch {
		case err != nil && ctx.Err() == nil && done+len(left) == len(runs): // Else it is tried again.
			return err
		case err != nil && ctx.Err() == nil && err.Error() != told:
			told = err.Error()
			rs.Warn("%s; trying again", told)
		case done == len(runs) && failed > 0:
			return fmt.Errorf("%d of %s of the sweep did not complete: submit resume %s runs those again", failed, plural.Of(len(runs), "run"), sweep)
		case done == len(runs):
			return nil
		case changed || len(left) < waiting:
			pause = sweepPoll
		}
		select {
		case <-ctx.Done():
			fmt.Fprintf(rs.Err, "the sweep continues; cancel it with: %s\n", rs.command(sweep, "cancel"))
			if len(left) > 0 {
				fmt.Fprintf(rs.Err, "%s not queued yet: %s\n", plural.Of(len(left), "run"), rs.command(sweep, "resume", "-F"))
			}
			return context.Cause(ctx)
		case <-time.After(pause):
			pause = min(pause*3/2, sweepPollMost)
		}
	}
}

// ResumeSweep queues the runs of a sweep that have ended and did not complete, or that have never
// been queued.
func (rs *Runs) ResumeSweep(ctx context.Context, runs []Run, change func(Run) Changes, m Manner) error {
	all, left := rs.lookAll(ctx, runs), map[string]bool{}
	for _, r := range all {
		switch {
		case r.status.State == submit.Unknown && r.taken():
			return fmt.Errorf("run %s: %s", r.Dir.Name(), r.status.Reason)
		case r.failed() || r.status.State == submit.Unknown:
			left[r.Dir.Name()] = true
		}
	}
	_, batch := runs[0].Scheduler.(submit.Batch)
	follow, missing := batch && m.Follow, len(left)
	active := slices.ContainsFunc(all, func(r swept) bool { return !r.status.State.Ended() })
	if missing == 0 && (!follow || !active) {
		return fmt.Errorf("the sweep has no run to resume: all of its %s have completed, or not ended yet", plural.Of(len(runs), "run"))
	}
	m.Follow = false
	full, err := rs.queueSweep(ctx, all, left, change, m)
	switch {
	case err != nil:
		return err
	case follow:
		for _, r := range all { // Staged, they can be cancelled.
			if left[r.Dir.Name()] && r.taken() && !rs.isOver(r.Run) {
				if _, err := rs.resume(ctx, r.Run, change(r.Run), Manner{NoSubmit: true}); err != nil {
					return fmt.Errorf("run %s: %w", r.Dir.Name(), err)
				}
			}
		}
		return rs.followSweep(ctx, SweepOf(runs[0].Manifest), left, change)
	case full != nil:
		return fmt.Errorf("%d of %s queued; %w\nadd -F to queue the others as soon as it takes them", missing-len(left), plural.Of(missing, "run"), full)
	}
	return nil
}
