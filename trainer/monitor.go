package trainer

import (
	"fmt"
	"slices"
	"strings"

	"gonbatch/checkpoint"
)

// checkMonitors refuses to monitor a metric that no validation of this training run will compute.
func (t *Trainer) checkMonitors(validates bool) error {
	c := t.config
	if err := t.checkMonitor("early_stopping.monitor", c.EarlyStopping.Monitor, validates); err != nil {
		return err
	}
	if s, ok := t.plateaus(); ok {
		if err := t.checkMonitor("schedule.monitor", s.Monitor, validates); err != nil {
			return err
		}
	}
	if c.Checkpoint.Off || c.monitorImplied {
		return nil
	}
	return t.checkMonitor("checkpoint.monitor", c.Checkpoint.Monitor, validates)
}

func (t *Trainer) checkMonitor(option, metric string, validates bool) error {
	known := t.trainingNames()
	if validates {
		known = append(t.validationMetrics(), known...)
	}
	if metric == "" || slices.Contains(known, metric) {
		return nil
	}
	use := strings.Join(known, ", ")
	if !validates && slices.Contains(t.validationMetrics(), metric) {
		return fmt.Errorf("%s: %q: Fit has no validation set to compute it: give it one, or use %s", option, metric, use)
	}
	return fmt.Errorf("%s: %q: there is no such metric: use one of %s", option, metric, use)
}

// validationMetrics returns the names of the metrics that a validation computes.
func (t *Trainer) validationMetrics() (names []string) {
	stages := []string{valStage}
	for _, v := range t.further {
		stages = append(stages, v.stage())
	}
	for _, m := range t.step.Evaluation.EvalMetrics() {
		for _, stage := range stages {
			names = append(names, metricName(stage, m.Name(), ""))
		}
	}
	slices.Sort(names)
	return names
}

// trainingNames returns the names of the losses and metrics of the training itself.
func (t *Trainer) trainingNames() []string {
	names := t.task.trainingLosses()
	for _, m := range t.choices.TrainMetrics {
		names = append(names, loggedMetric(m))
	}
	return names
}

// trainingLosses returns the names of the losses of the training itself.
func (t Task) trainingLosses() []string {
	names := []string{metricName("train", "loss", "")}
	for _, o := range t.objectives {
		if t.step != nil && o.Name != "" {
			names = append(names, metricName("train", "loss", o.Name))
		}
	}
	return names
}

// monitored returns the training losses and metrics that the configuration monitors.
func (t *Trainer) monitored() (names []string) {
	all := []string{t.config.EarlyStopping.Monitor, t.config.Checkpoint.Monitor}
	if s, ok := t.plateaus(); ok {
		all = append(all, s.Monitor)
	}
	return slices.DeleteFunc(all, func(name string) bool { return !slices.Contains(t.trainingNames(), name) })
}

// newestLosses returns the values of the monitored losses. All ranks get rank 0's values, because
// they base decisions on them.
func (t *Trainer) newestLosses() (Metrics, error) {
	values := Metrics{}
	for _, name := range t.monitored() {
		values[name] = t.metrics[name]
	}
	if len(values) == 0 {
		return nil, nil
	}
	return t.agree(values)
}

func oneOf(name, value string, values []string) error {
	if slices.Contains(values, value) {
		return nil
	}
	values = slices.DeleteFunc(slices.Clone(values), func(v string) bool { return v == "" })
	return fmt.Errorf("%s: %q: it must be %s or %s", name, value, strings.Join(values[:len(values)-1], ", "), values[len(values)-1])
}

// better reports whether a value is better than the best so far, by more than delta. NaN is never
// better.
func better(value float64, best *checkpoint.Number, mode string, delta float64) bool {
	switch {
	case value != value:
		return false
	case best == nil:
		return true
	case mode == "max":
		return value > float64(*best)+delta
	}
	return value < float64(*best)-delta
}
