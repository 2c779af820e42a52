package trainer

import (
	"fmt"
	"math"
	"math/bits"

	"gonbatch/data"
	"gonbatch/distributed"
	"gonbatch/internal/plural"
)

// plan is the length of a training run, as far as it is known in advance.
type plan struct {
	dataset   string
	examples  int // Of the dataset, even if an epoch leaves some out.
	batches   int // In an epoch.
	perUpdate int // Batches for an update.
	updates   int // In total; 0 if only the clock limits them.
}

func newPlan(c Config, training data.Dataset, l distributed.Loader) (plan, error) {
	p := plan{dataset: training.Name(), examples: training.Len(), batches: l.Steps(), perUpdate: c.AccumulateGradBatches}
	p.updates = product(c.MaxEpochs, p.updatesPerEpoch())
	if c.MaxSteps > 0 && (p.updates == 0 || c.MaxSteps < p.updates) {
		p.updates = c.MaxSteps
	}
	if p.updates == 0 && c.Schedule.needsTotal() {
		return p, fmt.Errorf("schedule.kind: %q needs to know the number of updates: set max_epochs or max_steps", c.Schedule.Kind)
	}
	if p.updates > 0 && c.Schedule.WarmupSteps >= p.updates {
		return p, fmt.Errorf("schedule.warmup_steps: %d, but the training has only %s", c.Schedule.WarmupSteps, plural.Of(p.updates, "update"))
	}
	return p, nil
}

// updatesPerEpoch returns the number of updates in an epoch. The last batches of an epoch make an
// update, however few they are.
func (p plan) updatesPerEpoch() int { return (p.batches-1)/p.perUpdate + 1 }

// isUpdate reports whether a batch of an epoch, counted from 0, ends with an update: every
// perUpdate-th batch does, and the last.
func (p plan) isUpdate(batch int) bool { return (batch+1)%p.perUpdate == 0 || batch+1 == p.batches }

// product multiplies factors that are at least 0. If the result is too large for an int, it returns
// the largest int: people write huge limits to say "none".
func product(factors ...int) int {
	all := uint(1)
	for _, f := range factors {
		high, low := bits.Mul(all, uint(f))
		if all = low; high > 0 || low > math.MaxInt {
			all = math.MaxInt
		}
	}
	return int(all)
}
