package run

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"

	"gonbatch/checkpoint/folder"
	"gonbatch/internal/rundir"
	"gonbatch/submit"
	"gonbatch/submit/report"
)

// Report returns a report on a run. If the scheduler doesn't answer now, the run's state is
// unknown.
func (rs *Runs) Report(ctx context.Context, r Run) (report.Run, error) {
	r, status, err := rs.look(ctx, r, nil)
	if err != nil && (ctx.Err() != nil || errors.As(err, new(submit.Unanswerable))) {
		return report.Run{}, err
	}
	view := r.view(status, err)
	others, _ := r.otherJobs(ctx) // The run's own job has been asked about.
	for _, other := range others {
		view.OtherJobs = append(view.OtherJobs, string(other.ID))
	}
	if err := errors.Join(addCounts(&view, r), addCheckpoint(&view, r.Dir)); err != nil {
		return view, err
	}
	if view.Ended {
		view.Used = used(r.Dir, status.State)
	}
	if view.Ended && status.State != submit.Completed {
		failure := submit.NewJobError(r.Job(), status)
		Locate(failure)
		view.Failure = failure.Error()
	}
	return view, nil
}

// used returns what the job in a run directory has used.
func used(dir rundir.Dir, state submit.State) *report.Used {
	spec, err := submit.ReadDecided(dir)
	if err != nil {
		return nil
	}
	m, ok := submit.Measure(dir, spec)
	if !ok {
		return nil
	}
	return &report.Used{Memory: m.Memory, Node: m.Node, CPUs: m.CPUs, Advice: m.Advise(spec, state == submit.OutOfMemory).String(), Text: m.Describe(spec)}
}

// List returns a report on the runs that a filter picks, the newest last. An error about one run is
// part of its report, because it must not hide the other runs; a filter doesn't hide it either.
func (rs *Runs) List(ctx context.Context, f Filter) (report.Runs, error) {
	list := report.Runs{Root: rs.Root, Runs: []report.Run{}, Filtered: !f.empty(), WithUsed: f.Used, Everywhere: f.Everywhere}
	dirs, others, err := rundir.ListAll(rs.Root)
	if err != nil {
		return list, err
	}
	list.Others, list.More = len(others), len(rs.elsewhere()) > 0
	if f.Everywhere {
		dirs = rs.listElsewhere(dirs)
	}
	var runs []Run
	var all []listed
	for _, l := range rs.openAll(dirs, f) {
		if l.err != nil || l.picked {
			runs, all = append(runs, l.run), append(all, l)
		}
	}
	surveys := rs.surveys(ctx, runs)
	for _, l := range all {
		if l.err != nil {
			list.Runs = append(list.Runs, report.Run{Run: l.run.Dir.Name(), Directory: l.run.Dir.Path(), Error: firstLine(l.err), Message: firstLine(l.err)})
			continue
		}
		r, status, err := rs.look(ctx, l.run, surveys)
		view := r.view(status, err)
		view.Restarts, view.Cells = l.counts.Restarts, l.counts.Cells
		if l.countErr != nil && view.Error == "" {
			view.Error = firstLine(l.countErr)
		}
		if f.picksState(view) {
			if f.Used && view.Ended {
				view.Used = used(r.Dir, status.State)
			}
			list.Runs = append(list.Runs, view)
		}
	}
	return list, nil
}

// listed is a run of a list as its files show it.
type listed struct {
	run    Run
	picked bool
	err    error
	// counts has what addCounts adds.
	counts   report.Run
	countErr error
}

// openAtOnce is how many runs are read at the same time: on a shared file system, each waits.
const openAtOnce = 16

// openAll opens runs, and counts the cells of those that a filter picks.
func (rs *Runs) openAll(dirs []rundir.Dir, f Filter) []listed {
	all := make([]listed, len(dirs))
	var group errgroup.Group
	group.SetLimit(openAtOnce)
	for i, dir := range dirs {
		group.Go(func() error {
			l := &all[i]
			if l.run, l.err = rs.open(dir); l.err == nil && f.picksManifest(l.run.Manifest, rs.Now()) {
				l.picked, l.countErr = true, addCounts(&l.counts, l.run)
			}
			return nil
		})
	}
	_ = group.Wait()
	return all
}

// view returns a report on a run from its manifest and its status, or the error instead of one.
func (r Run) view(status submit.Status, unanswered error) report.Run {
	view := report.Run{
		Run: r.Dir.Name(), Directory: r.Dir.Path(), Scheduler: r.Manifest.Scheduler, Job: r.Manifest.JobID, Cluster: r.Manifest.Cluster, Sweep: SweepOf(r.Manifest),
		Notebook: r.Manifest.Notebook.Path, Created: r.Manifest.Created, State: status.State.String(), Ended: status.State.Ended(),
		Message: status.String(), Reason: status.Reason, ExitCode: status.ExitCode,
	}
	if _, err := os.Stat(view.Notebook); errors.Is(err, fs.ErrNotExist) {
		view.Gone = true
	}
	if unanswered != nil {
		view.State, view.Error, view.Message = submit.Unknown.String(), firstLine(unanswered), "unknown: "+firstLine(unanswered)
		return view
	}
	if status.State == submit.Unknown && !r.taken() {
		view.State, view.Message = report.Staged, "staged, not queued"
		if r.Dir.IsChanging() {
			view.Message = "staged; a command is queueing it, or was killed while it did"
		}
		if r.unasked != nil && !errors.Is(r.unasked, exec.ErrNotFound) {
			view.Message += " as far as is known here: " + firstLine(r.unasked)
		}
	}
	return view
}

// addCounts adds the run's restarts and finished cells.
func addCounts(view *report.Run, r Run) error {
	starts, err := rundir.CountStarts(r.Dir)
	if err != nil {
		return err
	}
	finished, err := rundir.FinishedCells(r.Dir)
	view.Restarts, view.Cells = max(0, starts-1), report.Cells{All: len(r.Manifest.Cells), Finished: len(finished)}
	return err
}

// addCheckpoint adds the run's newest checkpoint.
func addCheckpoint(view *report.Run, dir rundir.Dir) error {
	newest, err := newestCheckpoint(dir)
	if err != nil || newest.Path == "" {
		return err
	}
	view.Checkpoint = &report.Checkpoint{Update: newest.Step, Time: newest.Time, Folder: filepath.Dir(newest.Path)}
	return nil
}

// newestCheckpoint returns the last checkpoint of any training run of the run; without a path if
// there is none.
func newestCheckpoint(dir rundir.Dir) (newest folder.Info, err error) {
	folders := []string{dir.Checkpoints()}
	for _, below := range []string{"*", filepath.Join("*", "*")} {
		found, err := filepath.Glob(filepath.Join(escapeGlob(dir.Checkpoints()), below))
		if err != nil {
			return newest, err
		}
		folders = append(folders, found...)
	}
	for _, f := range folders {
		if info, err := os.Stat(f); err != nil || !info.IsDir() {
			continue // A training run may be writing there.
		}
		checkpoints, err := folder.List(f)
		if err != nil {
			return newest, err
		}
		for _, c := range checkpoints {
			if c.Valid() && c.Time.After(newest.Time) {
				newest = c
			}
		}
	}
	return newest, nil
}

// escapeGlob returns a pattern that matches only path.
func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

// firstLine returns the first line of an error.
func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}
