package run

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"gonbatch/internal/rundir"
	"gonbatch/submit"
	"gonbatch/submit/report"
	"gonbatch/submit/store"
)

// Pruning is a request to remove runs.
type Pruning struct {
	// Filter picks the runs; what it doesn't pick stays.
	Filter
	// Older is the age from which runs are removed; 0 for any.
	Older time.Duration
	// Keep is how many of the newest runs of each job name stay.
	Keep int
	// Sure is set to remove the runs; otherwise they are only listed.
	Sure bool
}

// check refuses a request that names nothing, which would remove all runs.
func (p Pruning) check() error {
	if p.Keep < 0 {
		return submit.Usagef("--keep=%d: must be at least 0", p.Keep)
	}
	if p.empty() && p.Older == 0 && p.Keep == 0 {
		return submit.Usagef("prune removes runs: say which, such as --older 30d, --state failed or --keep 3")
	}
	return p.Check()
}

// candidate is a run that Prune may remove.
type candidate struct {
	run    Run
	view   report.Run
	picked bool
	// has is set if the run has a checkpoint, or may have one.
	has bool
	// kept is why a picked run stays; "" if it doesn't.
	kept string
}

// Prune removes runs that have ended, or lists them. It never removes a run that may still be
// needed: one that hasn't ended, as far as its scheduler can say, one that a command is working on,
// or the newest of a job name that has a checkpoint if no other run of that name keeps one.
func (rs *Runs) Prune(ctx context.Context, p Pruning) (report.Pruned, error) {
	done := report.Pruned{Sure: p.Sure, Runs: []report.PrunedRun{}}
	if err := p.check(); err != nil {
		return done, err
	}
	all, err := rs.candidates(ctx, p)
	if err != nil {
		return done, err
	}
	checkpointed := map[string]bool{} // The job names of which a run with a checkpoint stays.
	for _, c := range all {
		if !c.picked || c.kept != "" {
			checkpointed[c.run.Dir.JobName()] = checkpointed[c.run.Dir.JobName()] || c.has
		}
	}
	for _, c := range all { // The newest first.
		if !c.picked {
			continue
		}
		name := c.run.Dir.JobName()
		if c.kept == "" && c.has && !checkpointed[name] {
			c.kept, checkpointed[name] = "it has the only checkpoint of "+name, true
		}
		one := report.PrunedRun{Run: c.view.Run, Directory: c.view.Directory, State: c.view.State, Bytes: sizeOf(c.view.Directory), Kept: c.kept}
		if c.kept == "" && p.Sure {
			if err := rs.remove(ctx, c.run); err != nil {
				one.Kept = firstLine(err)
			}
		}
		done.Runs = append(done.Runs, one)
		if ctx.Err() != nil {
			return done, context.Cause(ctx)
		}
	}
	slices.Reverse(done.Runs)
	return done, nil
}

// candidates returns the runs, the newest first, with what is known of them before any is removed.
func (rs *Runs) candidates(ctx context.Context, p Pruning) (all []candidate, err error) {
	dirs, err := rundir.List(rs.Root)
	if err != nil {
		return nil, err
	}
	var runs []Run
	for _, d := range slices.Backward(dirs) {
		if r, err := rs.open(d); err == nil { // The list of runs says what is wrong with the others.
			runs = append(runs, r)
		}
	}
	surveys, newer := rs.surveys(ctx, runs), map[string]int{}
	for _, r := range runs {
		r, status, err := rs.look(ctx, r, surveys)
		newest, checkpointErr := newestCheckpoint(r.Dir)
		c := candidate{run: r, view: r.view(status, err), has: checkpointErr != nil || newest.Path != ""}
		name := r.Dir.JobName()
		c.picked = p.picksManifest(r.Manifest, rs.Now()) && p.picksState(c.view) && rs.Now().Sub(lastUsed(r.Manifest)) >= p.Older && newer[name] >= p.Keep
		newer[name]++
		switch {
		case !c.picked:
		case r.Dir.IsChanging():
			c.kept = "a command is working on it"
		default:
			c.kept = rs.needed(ctx, r, c.view, surveys[r.Scheduler])
		}
		all = append(all, c)
	}
	return all, nil
}

// lastUsed returns when a run was last submitted, resumed or ended.
func lastUsed(m rundir.Manifest) time.Time {
	last := m.Created
	for _, at := range []*time.Time{m.Submitted, m.Ended} {
		if at != nil && at.After(last) {
			last = *at
		}
	}
	for _, r := range m.Resumed {
		if r.Time.After(last) {
			last = r.Time
		}
	}
	return last
}

// ending is how long the programs of a run on this machine may take to save and end after the
// process that has run them is gone.
const ending = 2 * time.Minute

// needed is why a run must stay; "" if it need not.
func (rs *Runs) needed(ctx context.Context, r Run, view report.Run, survey submit.Survey) string {
	switch {
	case view.Error != "" || !view.Ended && view.State != report.Staged:
		return "it has not ended"
	case view.State == report.Staged && r.unasked != nil:
		return "nobody can say whether it is queued: " + firstLine(r.unasked)
	}
	if survey != nil { // A job may have been queued by hand, or requeued.
		live, err := survey.Live(ctx, r.Dir)
		switch {
		case err != nil && !errors.Is(err, exec.ErrNotFound):
			return "nobody can say whether it has a job: " + firstLine(err)
		case len(live) > 0:
			return "it has a " + live[0].String() + " that has not ended"
		}
	}
	if log, err := os.Stat(r.Dir.RankLog(0)); err == nil && view.State == string(submit.Lost) && rs.Now().Sub(log.ModTime()) < ending {
		return "its program may still be ending"
	}
	return ""
}

// remove removes a run, unless that is needed by now. On a full disk there is no room for its lock.
func (rs *Runs) remove(ctx context.Context, r Run) error {
	lock, err := rs.lock(ctx, r.Dir)
	if store.IsFull(err) {
		lock, err = nil, nil
	}
	if err != nil {
		return err
	}
	release := func(err error) error {
		if lock != nil {
			err = errors.Join(err, lock.Release())
		}
		return err
	}
	now, err := rs.open(r.Dir)
	if err != nil {
		return release(err)
	}
	now, status, err := rs.look(ctx, now, nil)
	view := now.view(status, err)
	if len(now.Manifest.Resumed) != len(r.Manifest.Resumed) || now.Manifest.JobID != r.Manifest.JobID {
		return release(errors.New("it was started again"))
	}
	if why := rs.needed(ctx, now, view, now.survey(ctx)); why != "" {
		return release(errors.New(why))
	}
	return r.Dir.Remove(lock)
}

// alone is the most links of a file that only one run has: its own, and the store's.
const alone = 2

// sizeOf returns the bytes on disk of a folder's files that no other run shares.
func sizeOf(folder string) (bytes int64) {
	_ = filepath.WalkDir(folder, func(_ string, entry fs.DirEntry, err error) error { // What can't be read isn't counted.
		if err != nil || entry.IsDir() {
			return nil //nolint:nilerr // see above
		}
		if info, err := entry.Info(); err == nil {
			if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Nlink <= alone {
				bytes += stat.Blocks * 512
			}
		}
		return nil
	})
	return bytes
}
