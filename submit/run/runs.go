package run

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"al.essio.dev/pkg/shellescape"

	"gonbatch/internal/plural"
	"gonbatch/internal/rundir"
	"gonbatch/submit"
)

// Runs are the runs in a folder, with the schedulers that may have them.
type Runs struct {
	submit.Shell
	// Root is the folder of the run directories.
	Root string
	// RootGiven is set if other commands find the runs only with --run-root.
	RootGiven bool
	// Schedulers are the schedulers that may have the runs.
	Schedulers []submit.Scheduler
}

// Run is a run, with its manifest and scheduler.
type Run struct {
	Dir       rundir.Dir
	Manifest  rundir.Manifest
	Scheduler submit.Scheduler
	// namedJob is the job id by which a command named the run; else "". The run may have been
	// resumed as another job since, or while the command waits.
	namedJob string
	// unasked is why the scheduler could not be asked whether it has a job of the run; nil if it
	// could, or need not be.
	unasked error
}

// Find finds the run that word names: a job id, a run's name or the beginning of one, or its
// directory.
func (rs *Runs) Find(word string) (Run, error) { return rs.find(word, rundir.Find) }

// FindWhole is Find for commands that change the run: the beginning of a name is not enough.
func (rs *Runs) FindWhole(word string) (Run, error) { return rs.find(word, rundir.FindWhole) }

func (rs *Runs) find(word string, find func(root, want string) (rundir.Dir, error)) (Run, error) {
	dir, err := find(rs.Root, word)
	if err != nil && !strings.ContainsRune(word, filepath.Separator) {
		dir, err = rs.findElsewhere(word, err)
	}
	if err != nil && strings.Contains(word, sweepInfix) {
		if all := rs.OfSweep(word); len(all) > 0 {
			return Run{}, fmt.Errorf("%s is a sweep of %s: name one of its runs, which submit status %[1]s lists", word, plural.Of(len(all), "run"))
		}
	}
	if err != nil {
		return Run{}, err
	}
	r, err := rs.open(dir)
	switch known, _ := rundir.KnownJobs(dir); { // The run can be read.
	case word == r.Manifest.JobID:
	case !slices.Contains(known, word):
		return r, err
	case slices.Contains(r.Manifest.EarlierJobs(), word):
		fmt.Fprintf(rs.Err, "job %s is an earlier job of run %s, which was resumed%s\n", word, dir.Name(), r.resumedAs())
	default:
		fmt.Fprintf(rs.Err, "job %s is another job of run %s, whose last one is %s\n", word, dir.Name(), r.Manifest.JobID)
	}
	r.namedJob = word
	return r, err
}

// resumedAs names the current job of a resumed run.
func (r Run) resumedAs() string {
	if r.Manifest.JobID == "" {
		return ", and its new job is not known"
	}
	return " as job " + r.Manifest.JobID
}

// open reads the run in dir, with the job that started it last.
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

// Job returns the run's job.
func (r Run) Job() submit.Job { return submit.JobOf(r.Dir, r.Manifest) }

// word returns the run's name for a command line.
func (r Run) word() string {
	if r.Manifest.JobID != "" {
		return r.Manifest.JobID
	}
	return r.Dir.Name()
}

// command returns a submit command about a run for the user to type. The run is named by its job id
// or its name, or by its directory, which is found from anywhere.
func (rs *Runs) command(run string, words ...string) string {
	words = append(words, run)
	if rs.RootGiven && !filepath.IsAbs(run) {
		words = append(words, "--run-root", rs.Root)
	}
	return "submit " + shellescape.QuoteCommand(words)
}

// taken reports whether a scheduler has, or had, the run. Otherwise it is only staged, as far as
// its manifest shows.
func (r Run) taken() bool { return r.Manifest.JobID != "" || r.Manifest.Process != nil }

// neverQueued reports whether the run is only staged, and has never been more: its next start is
// the one that the user asked for.
func (r Run) neverQueued() bool { return !r.taken() && len(r.Manifest.Resumed) == 0 }

// settled reports whether the manifest has the run's end. The state lost is not an end: another
// cluster may have the run.
func (r Run) settled() bool {
	return r.Manifest.Ended != nil && submit.State(r.Manifest.State) != submit.Lost
}

// asker returns the source of the run's status: the scheduler if it has the run and the manifest
// lacks the end, else the manifest.
func (r Run) asker(scheduler submit.Asker) submit.Asker {
	if r.taken() && !r.settled() {
		return scheduler
	}
	return recorded(r.Manifest)
}

// recorded is a manifest as an Asker.
type recorded rundir.Manifest

// Status returns the status in the manifest.
func (m recorded) Status(context.Context, submit.Job) (submit.Status, error) {
	return submit.RecordedStatus(rundir.Manifest(m)), nil
}

// survey returns a survey of the run's scheduler; nil if the scheduler has none.
func (r Run) survey(ctx context.Context) submit.Survey {
	if s, ok := r.Scheduler.(submit.Surveyor); ok {
		return s.Survey(ctx, r.Job())
	}
	return nil
}

// lock takes the lock for starting or ending the run, which one command at a time can hold. It
// prints a message while it waits for another command.
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
