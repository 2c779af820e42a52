package trainer

import (
	"cmp"
	"fmt"
	"maps"
	"strings"

	"gonbatch/data"
	"gonbatch/internal/plural"
	"gonbatch/trainer/internal/step"
)

// comparePosition returns an error if the position would mean something else under this
// configuration.
func (t *Trainer) comparePosition(at position) error {
	if at.Seed != t.config.Seed {
		return fmt.Errorf("it is from a training run with seed %d; this one has %d: use the same, or another checkpoint.dir", at.Seed, t.config.Seed)
	}
	if at.BatchSize != t.config.BatchSize {
		return fmt.Errorf("it is from a training run with batches of %s; this one has %d: use the same, or another checkpoint.dir", plural.Of(at.BatchSize, "example"), t.config.BatchSize)
	}
	if err := t.comparePhases(at); err != nil {
		return err
	}
	if at.Batch > 0 {
		if err := t.compareEpoch(at); err != nil {
			return err
		}
	}
	if run := t.env.RunName(); run != "" && run == at.Run && at.Name != t.config.Name {
		return fmt.Errorf("it belongs to the training run %q of this run; this one is %q: give each its own folder (checkpoint.dir)", at.Name, t.config.Name)
	}
	return nil
}

// compareIdentity refuses to take the end of another training for this one's, and prints what
// changes in a training that continues.
func (t *Trainer) compareIdentity(from origin, identity facts) error {
	differences := identity.differences(from.At.Facts, "", "was %s")
	switch {
	case differences == "":
	case from.At.inEpoch() && identity[fingerprintOf(trainingSet)] != from.At.Facts[fingerprintOf(trainingSet)]:
		return fmt.Errorf("%s is in the middle of an epoch over other examples: %s: %s", from.Path, differences, untilEpochEnd)
	case t.at.Finished:
		return fmt.Errorf("%s is of a training that has ended, and differs from this one: %s: to train this one, use another checkpoint.dir, or checkpoint.resume \"never\"; to begin with those weights, use InitFrom", from.Path, differences)
	default:
		t.printf("%sthe training continues with a change: %s\n", t.label(), differences)
	}
	return nil
}

// validationSets returns the fingerprints of the validation sets, by the stage of their metrics.
func (t *Trainer) validationSets(validation data.Dataset) map[string]string {
	all := map[string]string{}
	if validation != nil {
		all[valStage] = data.Fingerprint(t.limited(validation, t.config.LimitValBatches))
	}
	for _, v := range t.further {
		all[v.stage()] = data.Fingerprint(t.limited(v.data, t.config.LimitValBatches))
	}
	return all
}

// otherSet reports whether a monitored metric is of another validation set than it was.
func otherSet(monitor string, was, is map[string]string) bool {
	stage, _, _ := strings.Cut(monitor, "/")
	return was[stage] != "" && is[stage] != "" && was[stage] != is[stage]
}

// validateOn records the validation sets. What was best on another one is forgotten, unless the
// training has ended: it says nothing about this one.
func (t *Trainer) validateOn(sets map[string]string) {
	c, was := t.config, t.at.Validation
	best, stop := otherSet(c.Checkpoint.Monitor, was, sets), otherSet(c.EarlyStopping.Monitor, was, sets)
	rate := c.Schedule.Kind == "plateau" && otherSet(c.Schedule.Monitor, was, sets)
	t.at.Validation = maps.Clone(sets)
	for stage, known := range was {
		t.at.Validation[stage] = cmp.Or(sets[stage], known)
	}
	if t.at.Finished || !best && !stop && !rate {
		return
	}
	if best {
		t.at.Best, t.at.BestOf = nil, ""
	}
	if stop {
		t.at.Stopping = stopping{}
	}
	if rate {
		t.at.Plateau = plateau{Reductions: t.at.Plateau.Reductions}
	}
	t.printf("%swarning: the validation set is another one than before: what was best on that one is forgotten\n", t.label())
}

// untilEpochEnd is the advice on changes to an epoch that has begun.
const untilEpochEnd = "use the same until the epoch's end, or another checkpoint.dir"

// inEpoch reports whether an epoch has begun that has not ended.
func (at position) inEpoch() bool { return at.Batch > 0 && at.Batch < at.Batches }

// compareEpoch refuses changes to an epoch that has begun: the training would see some examples
// twice, and others not at all. Between epochs all of these may change.
func (t *Trainer) compareEpoch(at position) error {
	if at.Batches != t.plan.batches {
		return fmt.Errorf("it is from a training run with %s in an epoch; this one has %d: has the dataset changed, or drop_last?", plural.Of(at.Batches, "batch"), t.plan.batches)
	}
	if !at.inEpoch() {
		return nil
	}
	const fix = untilEpochEnd
	switch inOrder := t.config.inOrder(); {
	case at.Examples != t.plan.examples:
		return fmt.Errorf("it is in the middle of an epoch over %s, the dataset %s has %d now: %s", plural.Of(at.Examples, "example"), t.plan.dataset, t.plan.examples, fix)
	case at.Dataset != t.plan.dataset:
		return fmt.Errorf("it is in the middle of an epoch over the dataset %q, this training run has %q: %s", at.Dataset, t.plan.dataset, fix)
	case at.InOrder != inOrder:
		return fmt.Errorf("it is in the middle of an epoch with shuffling %s, now it is %s (shuffle, overfit_batches): %s", onOff(!at.InOrder), onOff(!inOrder), fix)
	case at.PerUpdate != t.plan.perUpdate:
		return fmt.Errorf("it is in the middle of an epoch with accumulate_grad_batches %d, this training run has %d: %s", at.PerUpdate, t.plan.perUpdate, fix)
	}
	return nil
}

// comparePrecision refuses weights of another type, which no program of this training run could
// use.
func (t *Trainer) comparePrecision(at position) error {
	if step.Precision(at.Precision).Weights() != step.Precision(t.config.Precision).Weights() {
		return fmt.Errorf("its weights have the precision %q, this training run has %q: use the same, or another checkpoint.dir", at.Precision, t.config.Precision)
	}
	return nil
}

// inOrder reports whether the examples are in the dataset's order.
func (c Config) inOrder() bool { return c.OverfitBatches > 0 || !*c.Shuffle }

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}
