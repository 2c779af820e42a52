package trainer

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/data"
	"gonbatch/data/load"
	"gonbatch/internal/plural"
)

// sayNever prints what the configuration asks for, but what has no effect, means the opposite, or
// never happens because the training is too short. Nobody would miss it otherwise.
func (r *run) sayNever(training data.Dataset) {
	for _, line := range slices.Concat(r.config.reversed(), r.config.idle(r.ownSchedule() != ""), r.sameSets(training)) {
		r.printf("%swarning: %s\n", r.label(), line)
	}
	if r.config.FastDevRun || r.plan.updates == 0 { // Only the clock limits it.
		return
	}
	if r.rates.areZero(r.plan.updates) {
		r.printf("%swarning: the schedule's factor is 0 for all %s: the weights stay as they are (in Go, a fraction of integers such as step/total is an integer)\n", r.label(), plural.Of(r.plan.updates, "update"))
	}
	for _, line := range r.config.never(r.plan, r.validation != nil, r.watchers(), r.folder != nil, r.ownSchedule() != "") {
		r.printf("%swarning: %s\n", r.label(), line)
	}
}

// reversed returns a line for each goal that is the opposite of what the metric's name says.
func (c Config) reversed() (lines []string) {
	for _, goal := range []struct {
		option, monitor, mode string
		off                   bool
	}{
		{"early_stopping", c.EarlyStopping.Monitor, c.EarlyStopping.Mode, false},
		{"checkpoint", c.Checkpoint.Monitor, c.Checkpoint.Mode, c.Checkpoint.Off},
		{"schedule", c.Schedule.Monitor, c.Schedule.Mode, c.Schedule.Kind != "plateau"},
	} {
		if usual := modeOf(goal.monitor); !goal.off && usual != "" && goal.mode != usual {
			lines = append(lines, fmt.Sprintf("%s.mode: %s, but the best %s is usually the %s: with it, the worst would count as the best", goal.option, goal.mode, goal.monitor, map[string]string{"min": "lowest", "max": "highest"}[usual]))
		}
	}
	return lines
}

// idle returns a line for each setting of something that is off.
func (c Config) idle(ownSchedule bool) (lines []string) {
	var defaults Config
	defaults.setDefaults(map[string]bool{})
	usual := defaults.fields()
	for name, f := range c.fields() {
		group, rest, _ := strings.Cut(name, ".")
		switch {
		case !c.chosen[name] || c.phase > 0 && !c.ofPhase[name]: // The phase before may have used it.
		case reflect.DeepEqual(f.value.Interface(), usual[name].value.Interface()): // A Config may come from another trainer.
		case group == "early_stopping" && c.EarlyStopping.Monitor == "":
			lines = append(lines, name+" has no effect: early_stopping.monitor is not set")
		case group == "schedule" && !ownSchedule && rest != "kind" && rest != "warmup_steps" && !slices.Contains(scheduleFields[c.Schedule.Kind], rest):
			lines = append(lines, fmt.Sprintf("%s has no effect: schedule.kind is %s", name, c.Schedule.Kind))
		case name == "min_epochs" && c.EarlyStopping.Monitor == "", name == "min_steps" && c.EarlyStopping.Monitor == "":
			lines = append(lines, name+" has no effect: only early stopping waits for it, and early_stopping.monitor is not set")
		}
	}
	slices.Sort(lines)
	return lines
}

// sameSets returns a line if a validation set is the training set: its metrics say nothing about
// new data.
func (r *run) sameSets(training data.Dataset) (lines []string) {
	for _, v := range append([]validationSet{{data: r.validation}}, r.further...) {
		if v.data != nil && v.data.Len() == training.Len() && data.Fingerprint(v.data) != "" && data.Fingerprint(v.data) == data.Fingerprint(training) && sameFirst(v.data, training) {
			lines = append(lines, fmt.Sprintf("the validation set %s is the training set: its metrics don't show how good the model is for new data", v.data.Name()))
		}
	}
	return lines
}

// sameFirst reports whether the first examples of two sets have the same inputs: the fingerprint of
// files has only their names and sizes.
func sameFirst(a, b data.Dataset) bool {
	var first [2][]*tensors.Tensor
	for i, ds := range []data.Dataset{a, b} {
		inputs, labels, err := load.Batch(ds, []int{0}, nil)
		if err != nil {
			return false // Loading reports it.
		}
		load.Finalize(labels)
		defer load.Finalize(inputs)
		first[i] = inputs
	}
	return slices.EqualFunc(first[0], first[1], (*tensors.Tensor).Equal)
}

// watchers returns what looks at the metrics after each validation.
func (t *Trainer) watchers() (all []string) {
	if t.config.EarlyStopping.Monitor != "" {
		all = append(all, "early stopping")
	}
	if _, ok := t.plateaus(); ok {
		all = append(all, `the schedule "plateau"`)
	}
	if !t.config.Checkpoint.Off && !t.config.monitorImplied && t.config.Checkpoint.Monitor != "" {
		all = append(all, "the best checkpoint")
	}
	return all
}

// never returns a line for each setting that has no effect in a training of this length.
func (c Config) never(p plan, validates bool, watchers []string, saves, ownSchedule bool) (lines []string) {
	epochs := p.updates / p.updatesPerEpoch()
	all, ends := plural.Of(p.updates, "update"), plural.Of(epochs, "epoch")
	add := func(is bool, format string, args ...any) {
		if is {
			lines = append(lines, fmt.Sprintf(format, args...))
		}
	}
	add(c.AccumulateGradBatches > p.batches, "accumulate_grad_batches: %d, but an epoch has only %s, so each update averages those", c.AccumulateGradBatches, plural.Of(p.batches, "batch"))

	validations := epochs / c.CheckValEveryNEpoch
	why := fmt.Sprintf("check_val_every_n_epoch: %d, but the training has only %s", c.CheckValEveryNEpoch, ends)
	if c.CheckValEveryNEpoch == 1 {
		why = fmt.Sprintf("the training has only %s, and an epoch %d", all, p.updatesPerEpoch())
	}
	if c.ValCheckInterval > 0 {
		validations = p.updates / c.ValCheckInterval
		why = fmt.Sprintf("val_check_interval: %d, but the training has only %s", c.ValCheckInterval, all)
	}
	if validations == 0 && (validates || len(watchers) > 0) {
		waiting := ""
		if len(watchers) > 0 {
			waiting = ", and nothing reaches " + strings.Join(watchers, ", ")
		}
		add(true, "%s: there is no validation%s", why, waiting)
	}
	only := plural.Of(validations, "validation")
	stopping := slices.Contains(watchers, "early stopping") && validations > 0
	add(stopping && c.EarlyStopping.StoppingThreshold == nil && validations <= c.EarlyStopping.Patience,
		"early_stopping.patience: %d, but the training has only %s: it can't stop early", c.EarlyStopping.Patience, only)
	add(stopping && c.MinSteps >= p.updates, "min_steps: %d, but the training has only %s: it can't stop early", c.MinSteps, all)
	s := c.Schedule
	if ownSchedule {
		s = ScheduleConfig{}
	}
	add(s.Kind == "plateau" && validations > 0 && validations < s.Patience+2, "schedule.patience: %d, but the training has only %s: the rate can't fall", s.Patience, only)

	add(s.Kind == "step" && s.StepSize >= p.updates-s.WarmupSteps, "schedule.step_size: %d, but the training has only %s after the warm-up: the rate never falls", s.StepSize, plural.Of(p.updates-s.WarmupSteps, "update"))
	if m := s.Milestones; s.Kind == "multistep" {
		add(m[len(m)-1] >= p.updates, "schedule.milestones: %d, but the training has only %s", m[len(m)-1], all)
	}

	add(saves && c.Checkpoint.EverySteps >= p.updates && c.Checkpoint.Every == 0, "checkpoint.every_steps: %d, but the training has only %s: the only checkpoint is that of its end", c.Checkpoint.EverySteps, all)
	add(saves && c.Checkpoint.EveryEpochs > max(epochs, 1) && c.Checkpoint.Every == 0, "checkpoint.every_epochs: %d, but the training has only %s: the only checkpoint is that of its end", c.Checkpoint.EveryEpochs, ends)
	add(c.LogHistogramsEvery > p.updates, "log_histograms_every: %d, but the training has only %s: there are no histograms", c.LogHistogramsEvery, all)
	return lines
}
