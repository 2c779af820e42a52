package trainer

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"gonbatch/data"
)

// LogParams logs hyper-parameters of the program's own on rank 0, such as the width of its model:
// to the run directory, where result.Compare shows them, to TensorBoard and to MLflow. The trainer
// logs its configuration, the optimizers and the dataset by itself. Other ranks do nothing.
func (t *Trainer) LogParams(params map[string]any) error {
	maps.Copy(t.ownParams, params)
	return t.logOf(params)
}

// logOf logs hyper-parameters.
func (t *Trainer) logOf(params map[string]any) error {
	if t.logger == nil {
		return nil
	}
	return t.logger.Params(params)
}

// logParams logs the hyper-parameters of the training.
func (r *run) logParams(training data.Dataset) error {
	params := maps.Clone(r.ownParams)
	maps.Copy(params, r.config.params(r.ownSchedule()))
	for _, o := range r.task.objectives {
		maps.Copy(params, optimizerParams(o))
	}
	if r.rates.built {
		maps.Copy(params, r.rates.params())
	}
	maps.Copy(params, r.scopeParams())
	maps.Copy(params, r.surroundings(training))
	return r.logOf(params)
}

// surroundings returns the hyper-parameters that are no settings.
func (t *Trainer) surroundings(training data.Dataset) map[string]any {
	return map[string]any{
		"dataset": training.Name(), "examples": training.Len(), "platform": t.world.Platform(),
		"world_size": t.world.Size(), "devices": t.world.Size() * t.world.Devices(),
	}
}

// areSurroundings are the names of surroundings.
var areSurroundings = []string{"dataset", "examples", "platform", "world_size", "devices"}

// logRates logs the optimizers' own learning rates that logParams did not know. They are known once
// the program of an update is built.
func (t *Trainer) logRates() error {
	params := t.rates.params()
	for _, o := range t.task.objectives {
		for name, value := range optimizerParams(o) {
			if params[name] == value {
				delete(params, name)
			}
		}
	}
	if len(params) == 0 {
		return nil
	}
	return t.logOf(params)
}

// params returns the fields of the configuration by name, as text, except those without a value.
// schedule is the type of a schedule that replaces the configured one, or "".
func (c *Config) params(schedule string) map[string]any {
	params := map[string]any{}
	for name, f := range c.fields() {
		if value := text(f.value); value != "" && isParam(name) && (schedule == "" || !strings.HasPrefix(name, "schedule.")) {
			params[name] = value
		}
	}
	if schedule != "" {
		params["schedule"] = schedule
	}
	return params
}

// isChosen reports whether a hyper-parameter is a setting of the program, a flag, the environment
// or a file, and not a default.
func (c *Config) isChosen(param string) bool {
	if _, ok := c.fields()[param]; ok {
		return c.chosen[param]
	}
	return !slices.Contains(areSurroundings, param)
}

// isParam reports whether a field is a parameter of the training. A folder is none: it changes when
// the run directory is moved, and MLflow refuses parameters that change. Neither are the loader's,
// whose defaults depend on the machine, and what is recorded.
func isParam(name string) bool {
	return name != "checkpoint.dir" && !strings.HasPrefix(name, "loader.") && !strings.HasPrefix(name, "profile.")
}

// ownSchedule returns the type of the schedule that replaces the configured one; "" if none does.
func (t *Trainer) ownSchedule() string {
	if reflect.DeepEqual(t.rates.schedule, t.config.Schedule.schedule()) {
		return ""
	}
	return fmt.Sprintf("%T", t.rates.schedule)
}
