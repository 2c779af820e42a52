package run

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"gonbatch/internal/plural"
	"gonbatch/internal/rundir"
	"gonbatch/submit"
	"gonbatch/submit/store"
)

// Resume starts an ended run again, with the changes that change makes to its job, and attends to
// it. It checks everything that it can refuse first.
func (rs *Runs) Resume(ctx context.Context, r Run, change func(*submit.JobSpec) error, m Manner) error {
	s, err := rs.resume(ctx, r, change, m.NoSubmit)
	if err != nil {
		return err
	}
	s.name = r.Dir.Path() // It may be anywhere.
	return rs.attend(ctx, s, m)
}

// resume hands an ended run to its scheduler again. It holds the run's lock meanwhile.
func (rs *Runs) resume(ctx context.Context, r Run, change func(*submit.JobSpec) error, noSubmit bool) (s Started, err error) {
	lock, err := rs.lock(ctx, r.Dir)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	if r, err = rs.open(r.Dir); err != nil {
		return s, err
	}
	if r, err = rs.mayResume(ctx, r, noSubmit); err != nil {
		return s, err
	}
	asked, err := rs.resumedSpec(r, change)
	if err != nil {
		return s, err
	}
	if err := needWork(r.Manifest, asked); err != nil {
		return s, err
	}
	decided, err := r.Scheduler.Prepare(ctx, asked, noSubmit)
	if err != nil {
		return s, err
	}
	if err := errors.Join(writeJob(r.Scheduler, r.Dir, asked, decided), lock.Check(), ctx.Err()); err != nil {
		return s, err
	}
	if err := rs.restart(r); err != nil {
		return s, err
	}
	return rs.handOver(ctx, r.Scheduler, decided, noSubmit)
}

// resumedSpec returns the job as it was submitted, with the user's changes.
func (rs *Runs) resumedSpec(r Run, change func(*submit.JobSpec) error) (submit.JobSpec, error) {
	spec, err := submit.ReadSpec(r.Dir)
	if err != nil {
		return spec, fmt.Errorf("run %s cannot be resumed: %w", r.Dir.Name(), err)
	}
	if err := change(&spec); err != nil {
		return spec, err
	}
	if err := spec.CheckFor(r.Scheduler); err != nil {
		return spec, err
	}
	return spec, rs.CheckSecrets(spec)
}

// needWork refuses a run that has nothing left to do, or whose programs are gone or have changed.
func needWork(m rundir.Manifest, spec submit.JobSpec) error {
	left := 0
	for _, cell := range spec.Cells {
		if rundir.IsFinished(spec.RunDir, cell.Name) {
			continue
		}
		left++
		if err := checkProgram(m, spec.RunDir, cell); err != nil {
			return fmt.Errorf("run %s cannot be resumed: %w", spec.RunDir.Name(), err)
		}
	}
	if left == 0 {
		return fmt.Errorf("run %s has nothing left to do: all of its %s succeeded", spec.RunDir.Name(), plural.Of(len(spec.Cells), "cell"))
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
// command line.
func (rs *Runs) restart(r Run) error {
	for _, path := range []string{r.Dir.ExitStatus(), r.Dir.EndingPath()} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := rundir.ClearFailure(r.Dir); err != nil {
		return err
	}
	known, err := rundir.KnownJobs(r.Dir)
	if err != nil {
		return err
	}
	slices.Sort(known)
	known = slices.Compact(known)
	return rundir.UpdateManifest(r.Dir, func(m *rundir.Manifest) {
		m.Resumed = append(m.Resumed, rundir.Resumption{Time: rs.Now(), CommandLine: rs.CommandLine, JobID: r.Manifest.JobID, State: m.State, Jobs: known})
		m.JobID, m.Cluster, m.Process, m.Submitted = "", "", nil, nil
		m.ForgetEnd()
	})
}
