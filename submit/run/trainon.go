package run

import (
	"context"
	"fmt"
	"slices"

	"al.essio.dev/pkg/shellescape"

	"gonbatch/internal/rundir"
	"gonbatch/submit"
	"gonbatch/submit/stage"
)

// trainOn returns the cells that run again because a resumed run gets more arguments, in place of
// those that an earlier resume gave it: the first that trains, and all after it, whether they have
// ended or not. It checks the arguments, says what they mean for the result, and returns the values
// of all flags.
func (rs *Runs) trainOn(ctx context.Context, spec submit.JobSpec, before, more []string) (again []rundir.Cell, flags map[string]string, err error) {
	if len(more) == 0 {
		return nil, nil, nil
	}
	first, err := firstToTrain(spec)
	if err != nil {
		return nil, nil, err
	}
	if flags, err = stage.CheckMoreArgs(ctx, rs.Shell, spec); err != nil {
		return nil, nil, fmt.Errorf("run %s, %w", spec.RunDir.Name(), err)
	}
	if len(before) > 0 {
		rs.Warn("these arguments replace those of the earlier resume: %s", shellescape.QuoteCommand(before))
	}
	rs.Warn("from cell %s on, the programs run again, and training goes on from its newest checkpoint with %s: this isn't the result of a training with these arguments from the beginning", spec.Cells[first].Label(), shellescape.QuoteCommand(more))
	return spec.Cells[first:], flags, nil
}

// firstToTrain returns the index of the first cell that has trained with checkpoints.
func firstToTrain(spec submit.JobSpec) (int, error) {
	first := slices.IndexFunc(spec.Cells, func(c rundir.Cell) bool { return rundir.HasTrained(spec.RunDir, c.Name) })
	if first < 0 {
		return 0, fmt.Errorf("run %s has no checkpoints from which its training could go on with other arguments: submit the notebook again", spec.RunDir.Name())
	}
	return first, nil
}
