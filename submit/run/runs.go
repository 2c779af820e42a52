package run

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gonbatch/internal/rundir"
	"gonbatch/submit"
)

// Runs are the runs below a folder, and the schedulers that may have them.
type Runs struct {
	submit.Shell
	// Root is the folder of the run directories.
	Root string
	// Schedulers are those that runs may have been given to.
	Schedulers []submit.Scheduler
}

// Run is a run that a command names.
type Run struct {
	Dir       rundir.Dir
	Manifest  rundir.Manifest
	Scheduler submit.Scheduler
	// earlierJob is the job that a command has named the run by, where the run has been resumed
	// since as another one; else "".
	earlierJob string
	// unasked is why the scheduler could not be asked whether it has a job of the run; nil where it
	// could, or need not.
	unasked error
}

// Find finds the run that word names: a job id, a run's name or the start of one, or its directory.
func (rs *Runs) Find(word string) (Run, error) {
	dir, err := rundir.Find(rs.Root, word)
	if err != nil {
		return Run{}, err
	}
	r, err := rs.open(dir)
	if slices.Contains(r.Manifest.EarlierJobs(), word) && word != r.Manifest.JobID {
		r.earlierJob = word
		fmt.Fprintf(rs.Err, "job %s of run %s has ended; the run was resumed%s\n", word, dir.Name(), r.resumedAs())
	}
	return r, err
}

// resumedAs names the job that a resumed run has now.
func (r Run) resumedAs() string {
	if r.Manifest.JobID == "" {
		return ", and its new job is not known"
	}
	return " as job " + r.Manifest.JobID
}

// open reads what is known of the run in dir, with the job that has started it last.
func (rs *Runs) open(dir rundir.Dir) (Run, error) {
	r := Run{Dir: dir}
	var err error
	if r.Manifest, err = rundir.ReadManifest(dir); err != nil {
		return r, err
	}
	if _, err = r.Manifest.Adopt(dir); err != nil {
		return r, err
	}
	for _, s := range rs.Schedulers {
		if s.Name() == r.Manifest.Scheduler {
			r.Scheduler = s
			return r, nil
		}
	}
	return r, fmt.Errorf("run %s was given to the scheduler %q, which this version of submit does not know", dir.Name(), r.Manifest.Scheduler)
}

// Job is the run as its scheduler knows it.
func (r Run) Job() submit.Job { return submit.JobOf(r.Dir, r.Manifest) }

// word names the run in a command line.
func (r Run) word() string {
	if r.Manifest.JobID != "" {
		return r.Manifest.JobID
	}
	return r.Dir.Name()
}

// taken reports whether a scheduler has, or had, the run. Another one is only staged, as far as it
// knows itself.
func (r Run) taken() bool { return r.Manifest.JobID != "" || r.Manifest.Process != nil }

// settled reports whether the manifest knows how the run ended. That it was lost is no end: another
// cluster may have it.
func (r Run) settled() bool {
	return r.Manifest.Ended != nil && submit.State(r.Manifest.State) != submit.Lost
}

// asker knows how the run is doing: the scheduler if it has the run and the manifest does not know
// the end, else the manifest.
func (r Run) asker(scheduler submit.Asker) submit.Asker {
	if r.taken() && !r.settled() {
		return scheduler
	}
	return recorded(r.Manifest)
}

// recorded is a manifest that knows how its run is doing.
type recorded rundir.Manifest

// Status is what the manifest knows.
func (m recorded) Status(context.Context, submit.Job) (submit.Status, error) {
	return submit.RecordedStatus(rundir.Manifest(m)), nil
}

// survey asks the run's scheduler about many jobs; nil where it cannot be asked so.
func (r Run) survey(ctx context.Context) submit.Survey {
	if s, ok := r.Scheduler.(submit.Surveyor); ok {
		return s.Survey(ctx)
	}
	return nil
}

// lock gives the right to start or end the run, which one command at a time has. It says so where
// another has it.
func (rs *Runs) lock(ctx context.Context, dir rundir.Dir) (*rundir.Lock, error) {
	lock, err := rundir.AcquireLock(ctx, dir.RunLock(), func(p rundir.Process) {
		fmt.Fprintf(rs.Err, "waiting for another submit command (process %d on %s), which is starting or ending this run\n", p.PID, p.Host)
	})
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", dir.Name(), err)
	}
	if err := lock.CoverChildren(ctx); err != nil {
		return nil, fmt.Errorf("run %s: %w", dir.Name(), errors.Join(err, lock.Release()))
	}
	return lock, nil
}
