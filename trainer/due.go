package trainer

import (
	"math"
	"time"
)

// reportIsDue reports whether to log the losses after this update. They must be up to date for a
// validation that depends on one of them.
func (r *run) reportIsDue() bool {
	every := int64(r.config.LogEvery)
	return every > 0 && r.at.Step%every == 0 || r.at.Batch == r.plan.batches || r.ended() || r.validationIsDue() && len(r.monitored()) > 0
}

// saveIsDue reports, on rank 0, whether it is time for a checkpoint.
func (r *run) saveIsDue() bool {
	return r.world.IsMain() && r.config.Checkpoint.Every > 0 && time.Since(r.lastSave) >= r.config.Checkpoint.Every
}

// stepIsDue reports whether a checkpoint is due after this update.
func (r *run) stepIsDue() bool {
	every := r.config.Checkpoint.EverySteps
	return every > 0 && r.at.Step%int64(every) == 0
}

// epochIsDue reports whether a checkpoint is due after this epoch, which is already counted.
func (r *run) epochIsDue() bool {
	c := r.config.Checkpoint
	if c.EveryEpochs > 0 {
		return r.at.Epoch%c.EveryEpochs == 0
	}
	return c.EverySteps == 0 && c.Every == 0
}

// untilDue returns the time until max_time is over or a checkpoint is due, whichever is first. A
// checkpoint that is due now is followed by another.
func (r *run) untilDue() time.Duration {
	due := time.Duration(math.MaxInt64)
	if limit := r.config.MaxTime; limit > 0 {
		due = limit - r.elapsed()
	}
	if every := r.config.Checkpoint.Every; every > 0 {
		left := every - time.Since(r.lastSave)
		if left <= 0 {
			left = every
		}
		due = min(due, left)
	}
	return due
}
