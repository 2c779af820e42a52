package local

import (
	"context"
	"errors"
	"fmt"

	"gonbatch/internal/rundir"
	"gonbatch/submit"
)

// untilDone runs a cell to its end. If a rank of a training run dies, it starts the cell again from
// the newest checkpoint.
func (s *start) untilDone(ctx context.Context, cell rundir.Cell) error {
	for {
		err := s.cell(ctx, cell)
		var job *submit.JobError
		if cell.Once || ctx.Err() != nil || !errors.As(err, &job) || job.Status.State != submit.Failed {
			return err
		}
		again, recordErr := s.again(cell)
		if recordErr != nil || !again {
			return errors.Join(err, recordErr)
		}
		fmt.Fprintf(s.Err, "%v\nstart %d resumes from the newest checkpoint\n", err, s.number)
	}
}

// again begins another start for a cell whose rank has died, unless the previous start died at the
// same update, or no restart is left. It reports whether it did.
func (s *start) again(cell rundir.Cell) (bool, error) {
	dir := s.spec.RunDir
	death := rundir.Death{Start: s.number, Cell: cell.Name, Update: rundir.ReadProgress(dir)}
	if death.Update == 0 && !rundir.HasCheckpoints(dir, cell.Name) {
		return false, nil // It isn't a training run, or had not begun.
	}
	_, last, err := rundir.LastDeaths(dir)
	if err != nil {
		return false, err
	}
	if err := rundir.AddDeath(dir, death); err != nil {
		return false, err
	}
	switch {
	case death.Repeats(last):
		fmt.Fprintln(s.Err, submit.DescribeRepeat(death))
		return false, nil
	case s.restarts >= s.spec.MaxRestarts:
		fmt.Fprintf(s.Err, "%s; restarts so far: %d, and --max-restarts=%d\nresume it with: %s\n",
			submit.DescribeDeath(death), s.restarts, s.spec.MaxRestarts, submit.ResumeCommand(dir))
		return false, nil
	}
	s.restarts++
	return true, s.record()
}
