package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"gonbatch/internal/plural"
	"gonbatch/internal/rundir"
	"gonbatch/submit"
	"gonbatch/submit/store"
)

// Changes are what a resumed run does differently.
type Changes struct {
	// Job changes the job.
	Job func(*submit.JobSpec) error
	// Args are passed to the programs after those of the submission, in place of those of an
	// earlier resumption. If there are some, the training goes on even if it has ended: the first
	// cell that trains runs again, and all after it.
	Args []string
}

// Resume starts an ended run again, with changes, and attends to it. It checks everything that it
// can refuse first.
func (rs *Runs) Resume(ctx context.Context, r Run, c Changes, m Manner) error {
	s, err := rs.resume(ctx, r, c, m)
	if err != nil {
		return err
	}
	s.name = r.Dir.Path() // It may be anywhere.
	return rs.attend(ctx, s, m)
}

// resume hands an ended run to its scheduler again. It holds the run's lock meanwhile.
func (rs *Runs) resume(ctx context.Context, r Run, c Changes, m Manner) (s Started, err error) {
	if err := r.Dir.CheckOwner(); err != nil {
		return s, err
	}
	lock, err := rs.lock(ctx, r.Dir)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	if r, err = rs.open(r.Dir); err != nil {
		return s, err
	}
	if r, err = rs.mayResume(ctx, r, m.NoSubmit); err != nil {
		return s, err
	}
	if err := markEnded(r); err != nil {
		return s, err
	}
	asked, before, err := rs.resumedSpec(r, c)
	if err != nil {
		return s, err
	}
	again, flags, err := rs.trainOn(ctx, asked, before, c.Args)
	if err != nil {
		return s, err
	}
	if err := needWork(r.Manifest, asked, again); err != nil {
		return s, err
	}
	decided, expected, err := rs.decide(ctx, r.Scheduler, asked, m)
	if err != nil {
		return s, err
	}
	if err := errors.Join(writeJob(r.Scheduler, r.Dir, asked, decided), lock.Check(), ctx.Err()); err != nil {
		return s, err
	}
	for _, cell := range again {
		if err := rundir.Reopen(r.Dir, cell.Name); err != nil {
			return s, err
		}
	}
	if err := rs.restart(ctx, r, asked, flags); err != nil {
		return s, err
	}
	s, err = rs.handOver(ctx, r.Scheduler, decided, m.NoSubmit)
	s.expected = expected
	return s, err
}

// markEnded records that a cell ended well if its ranks have, in the run's last start, and the job
// was cancelled or lost before it could. A start before the last resumption no longer counts: that
// may have asked for other arguments.
func markEnded(r Run) error {
	dir, resumed := r.Dir, r.Manifest.Resumed
	spec, err := submit.ReadSpec(dir)
	if err != nil {
		return fmt.Errorf("run %s cannot be resumed: %w", dir.Name(), err)
	}
	start, err := rundir.CountStarts(dir)
	if err != nil || len(resumed) > 0 && resumed[len(resumed)-1].Starts == start {
		return err
	}
	for _, cell := range spec.Cells {
		if rundir.IsFinished(dir, cell.Name) || !rundir.HaveSucceeded(dir, start, cell.Name, spec.TasksOf(cell)) {
			continue
		}
		if err := rundir.MarkFinished(dir, cell.Name, start); err != nil {
			return err
		}
	}
	return nil
}

// resumedSpec returns the job as it was submitted, with the user's changes, and the arguments that
// an earlier resume gave it.
func (rs *Runs) resumedSpec(r Run, c Changes) (spec submit.JobSpec, before []string, err error) {
	if spec, err = submit.ReadSpec(r.Dir); err != nil {
		return spec, nil, fmt.Errorf("run %s cannot be resumed: %w", r.Dir.Name(), err)
	}
	if err := rs.changeJob(r, &spec, c); err != nil {
		return spec, nil, err
	}
	before = spec.MoreArgs
	if len(c.Args) > 0 {
		spec.MoreArgs = c.Args
	}
	if err := spec.CheckFor(r.Scheduler); err != nil {
		return spec, nil, err
	}
	return spec, before, rs.CheckSecrets(spec)
}

// changeJob changes the job of a run for another start, which doesn't keep the options that were
// about one start.
func (rs *Runs) changeJob(r Run, spec *submit.JobSpec, c Changes) error {
	var forgotten []string
	if !r.neverQueued() {
		forgotten = spec.ForgetOnce()
	}
	if err := c.Job(spec); err != nil {
		return err
	}
	forgotten = slices.DeleteFunc(forgotten, func(option string) bool {
		name, _, _ := strings.Cut(strings.TrimPrefix(option, "--"), "=")
		_, again := spec.Passed[name]
		return again || name == "kill-on-invalid-dep"
	})
	if len(forgotten) > 0 && SweepOf(r.Manifest) == "" {
		rs.Warn("%s was for the job before: give it again if it is for this one too", strings.Join(forgotten, ", "))
	}
	return nil
}

// needWork refuses a run that has nothing left to do, or whose programs are gone or have changed.
func needWork(m rundir.Manifest, spec submit.JobSpec, again []rundir.Cell) error {
	left := 0
	for _, cell := range spec.Cells {
		runs := slices.ContainsFunc(again, func(c rundir.Cell) bool { return c.Name == cell.Name })
		if rundir.IsFinished(spec.RunDir, cell.Name) && !runs {
			continue
		}
		left++
		if err := checkProgram(m, spec.RunDir, cell); err != nil {
			return fmt.Errorf("run %s cannot be resumed: %w", spec.RunDir.Name(), err)
		}
	}
	if left == 0 {
		if now, err := rundir.ReadManifest(spec.RunDir); err != nil || submit.State(now.State) != submit.Completed {
			return err // A job has to say that the run is completed.
		}
		hint := ""
		if _, err := firstToTrain(spec); err == nil {
			hint = fmt.Sprintf("; to train on, pass arguments: submit resume %s -- -max_epochs 20", spec.RunDir.Name())
		}
		return fmt.Errorf("run %s has nothing left to do: all of its %s succeeded%s", spec.RunDir.Name(), plural.Of(len(spec.Cells), "cell"), hint)
	}
	return nil
}

// checkProgram refuses a cell whose program is gone, or is not the one that was compiled for the
// run: the results before and after would come from different programs.
func checkProgram(m rundir.Manifest, dir rundir.Dir, cell rundir.Cell) error {
	if _, err := os.Stat(dir.CellProgram(cell)); err != nil {
		return fmt.Errorf("its program is gone: %w", err)
	}
	path := dir.Program(cell.Name)
	if cell.Shell {
		path = dir.CellProgram(cell)
	}
	i := slices.IndexFunc(m.Cells, func(c rundir.Cell) bool { return c.Name == cell.Name })
	if i < 0 || m.Cells[i].SHA256 == "" {
		return nil
	}
	hash, err := store.HashFile(path)
	if err != nil {
		return fmt.Errorf("its program cannot be read: %w", err)
	}
	if hash != m.Cells[i].SHA256 {
		return fmt.Errorf("%s has changed since it was submitted: its SHA-256 is %s, and %s in %s; submit the notebook again", path, hash, m.Cells[i].SHA256, dir.ManifestPath())
	}
	return nil
}

// restart turns the run back into one that has not ended, and records the resumption with its
// command line and, if there are new arguments, those of its cells and the values of all flags.
func (rs *Runs) restart(ctx context.Context, r Run, asked submit.JobSpec, flags map[string]string) error {
	if err := rundir.ForgetEnd(r.Dir); err != nil {
		return err
	}
	known, err := rundir.KnownJobs(r.Dir)
	starts, countErr := rundir.CountStarts(r.Dir)
	if err := errors.Join(err, countErr); err != nil {
		return err
	}
	slices.Sort(known)
	known = slices.Compact(known)
	return rs.update(ctx, r.Dir, func(m *rundir.Manifest) {
		last := len(m.Resumed) - 1
		switch {
		case !r.taken() && last >= 0 && slices.Equal(m.Resumed[last].Jobs, known) && m.Resumed[last].Starts == starts: // The last attempt didn't queue it.
			m.Resumed[last].Time, m.Resumed[last].CommandLine = rs.Now(), rs.CommandLine
		case r.taken() || len(known) > 0: // Else it starts for the first time.
			m.Resumed = append(m.Resumed, rundir.Resumption{Time: rs.Now(), CommandLine: rs.CommandLine, JobID: r.Manifest.JobID, State: m.State, Jobs: known, Starts: starts})
		}
		if flags != nil {
			m.Flags = flags
			for i, cell := range m.Cells {
				if at := slices.IndexFunc(asked.Cells, func(c rundir.Cell) bool { return c.Name == cell.Name }); at >= 0 {
					m.Cells[i].Args = asked.CellArgs(asked.Cells[at])
				}
			}
		}
		m.JobID, m.Cluster, m.Process, m.Submitted = "", "", nil, nil
		m.ForgetEnd()
	})
}
