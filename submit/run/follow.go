package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"gonbatch/internal/rundir"
	"gonbatch/submit"
	"gonbatch/submit/report"
)

// follow shows a rank's log until the job ends, and records how it ended.
func (rs *Runs) follow(ctx context.Context, asker submit.Asker, job submit.Job, rank int) error {
	status, err := submit.Follow(ctx, asker, job, submit.FollowOptions{Out: rs.Out, Progress: rs.Err, Rank: rank})
	if failed := (*submit.JobError)(nil); errors.As(err, &failed) {
		Locate(failed)
	}
	if status.State.Ended() {
		rs.WarnUnlessForbidden(rs.recordEnd(ctx, job, status))
		if u := used(job.Dir, status.State); u != nil {
			fmt.Fprintf(rs.Err, "%s", u)
		}
		return err
	}
	var interrupt submit.Interrupt
	if errors.As(err, &interrupt) || errors.Is(err, syscall.EPIPE) {
		fmt.Fprintf(rs.Err, "%s continues; cancel it with: %s\n", job, rs.command(Run{Dir: job.Dir, Manifest: rundir.Manifest{JobID: string(job.ID)}}.word(), "cancel"))
	}
	return err
}

// LogRequest is a request for the log of a rank.
type LogRequest struct {
	Rank int
	// Follow shows the log as it grows, until the run ends.
	Follow bool
	// JSON reports each line as JSON.
	JSON bool
}

// Log prints the log of a run's rank.
func (rs *Runs) Log(ctx context.Context, r Run, req LogRequest) (err error) {
	if err := r.checkRank(req.Rank); err != nil {
		return err
	}
	if req.JSON {
		lines := &report.LineWriter{To: rs.Out, Rank: req.Rank}
		reported := *rs
		reported.Out, rs = lines, &reported
		defer func() { err = errors.Join(err, lines.Close()) }()
	}
	if req.Follow {
		return rs.followRun(ctx, r, req.Rank)
	}
	return rs.printLog(ctx, r, req.Rank)
}

// followRun shows a rank's log as it grows, until the run ends.
func (rs *Runs) followRun(ctx context.Context, r Run, rank int) error {
	survey := r.survey(ctx)
	r, err := rs.adopted(ctx, r, survey)
	if err != nil {
		return err
	}
	if !r.taken() {
		return fmt.Errorf("run %s is staged, not queued: there is nothing to follow", r.Dir.Name())
	}
	r = rs.requeued(ctx, r, r.Scheduler, survey)
	return rs.follow(ctx, r.asker(r.Scheduler), r.Job(), rank)
}

// checkRank refuses a rank that the run does not have and did not have before it was resumed.
func (r Run) checkRank(rank int) error {
	if rank < 0 {
		return submit.Usagef("--rank=%d: ranks count from 0", rank)
	}
	spec, err := submit.ReadSpec(r.Dir)
	if err != nil || rank < spec.Tasks() {
		return nil //nolint:nilerr // a run that does not know its ranks has any
	}
	if _, err := os.Stat(r.Dir.RankLog(rank)); err == nil {
		return nil
	}
	if spec.Tasks() == 1 {
		return submit.Usagef("--rank=%d: run %s has one rank, 0", rank, r.Dir.Name())
	}
	return submit.Usagef("--rank=%d: run %s has %d ranks: give 0 to %d", rank, r.Dir.Name(), spec.Tasks(), spec.Tasks()-1)
}

// untilDone writes until the context ends: the copy of a long log must not go on after a Ctrl-C.
type untilDone struct {
	ctx context.Context
	to  io.Writer
}

func (u untilDone) Write(text []byte) (int, error) {
	if u.ctx.Err() != nil {
		return 0, context.Cause(u.ctx)
	}
	return u.to.Write(text)
}

// printLog prints a rank's log, and the failure that the ranks recorded.
func (rs *Runs) printLog(ctx context.Context, r Run, rank int) error {
	any, err := submit.NewTail(r.Dir.RankLog(rank)).Copy(untilDone{ctx, rs.Out})
	if err != nil || any {
		return errors.Join(err, rs.describeFailure(r))
	}
	r, status, err := rs.look(ctx, r, nil)
	if err != nil {
		return errors.Join(fmt.Errorf("rank %d has no log: %s: %w", rank, r.Dir.RankLog(rank), fs.ErrNotExist), err)
	}
	return fmt.Errorf("rank %d of run %s has logged nothing; the run is %s", rank, r.Dir.Name(), status)
}

// describeFailure prints the failure that the ranks recorded, if any.
func (rs *Runs) describeFailure(r Run) error {
	f, err := rundir.ReadFailure(r.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(rs.Err, "\nthe run failed: %s\n", rundir.Printable(submit.DescribeFailure(f)))
	return err
}
