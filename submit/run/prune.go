package run

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"gonbatch/submit"
	"gonbatch/submit/report"
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

// Prune removes runs that have ended, or lists them. It never removes a run that may still be
// needed: one that hasn't ended, one that a command is working on, or the last of a job name that
// has a checkpoint.
func (rs *Runs) Prune(ctx context.Context, p Pruning) (report.Pruned, error) {
	done := report.Pruned{Sure: p.Sure, Runs: []report.PrunedRun{}}
	if err := p.check(); err != nil {
		return done, err
	}
	list, err := rs.List(ctx, Filter{})
	if err != nil {
		return done, err
	}
	newer, checkpointed := map[string]int{}, map[string]bool{} // By job name, of runs that stay or are newer.
	for _, view := range slices.Backward(list.Runs) {
		if ctx.Err() != nil {
			return done, context.Cause(ctx)
		}
		r, err := rs.Find(view.Directory)
		if err != nil {
			continue // The list has said what is wrong with it.
		}
		name := r.Dir.JobName()
		newest, err := newestCheckpoint(r.Dir)
		has := err != nil || newest.Path != ""
		place := newer[name]
		newer[name]++
		picked := p.picksManifest(r.Manifest, rs.Now()) && p.picksState(view) && rs.Now().Sub(r.Manifest.Created) >= p.Older && place >= p.Keep
		if !picked {
			checkpointed[name] = checkpointed[name] || has
			continue
		}
		one := report.PrunedRun{Run: view.Run, Directory: view.Directory, State: view.State, Bytes: sizeOf(view.Directory)}
		switch {
		case view.Error != "" || !view.Ended && view.State != report.Staged:
			one.Kept = "it has not ended"
		case r.Dir.IsChanging():
			one.Kept = "a command is working on it"
		case has && !checkpointed[name]:
			one.Kept = "it has the only checkpoint of " + name
		case p.Sure:
			if err := rs.remove(ctx, r); err != nil {
				one.Kept = firstLine(err)
			}
		}
		if one.Kept != "" {
			checkpointed[name] = checkpointed[name] || has
		}
		done.Runs = append(done.Runs, one)
	}
	slices.Reverse(done.Runs)
	return done, nil
}

// remove removes a run, unless it has been resumed since it was looked at.
func (rs *Runs) remove(ctx context.Context, r Run) error {
	lock, err := rs.lock(ctx, r.Dir)
	if err != nil {
		return err
	}
	now, err := rs.open(r.Dir)
	if err == nil && len(now.Manifest.Resumed) != len(r.Manifest.Resumed) || err == nil && now.taken() && !now.settled() {
		err = errors.New("it was started again")
	}
	if err != nil {
		return errors.Join(err, lock.Release())
	}
	return r.Dir.Remove(lock)
}

// sizeOf returns the bytes on disk of a folder's files that no other run shares.
func sizeOf(folder string) (bytes int64) {
	_ = filepath.WalkDir(folder, func(_ string, entry fs.DirEntry, err error) error { // What can't be read isn't counted.
		if err != nil || entry.IsDir() {
			return nil //nolint:nilerr // see above
		}
		if info, err := entry.Info(); err == nil {
			if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Nlink == 1 {
				bytes += stat.Blocks * 512
			}
		}
		return nil
	})
	return bytes
}
