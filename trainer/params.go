package trainer

import (
	"fmt"
	"maps"
	"reflect"
	"strings"

	"gonbatch/data"
)

// LogParams logs hyper-parameters of the program's own on rank 0, such as the width of its model:
// to the run directory, where result.Compare shows them, to TensorBoard and to MLflow. The trainer
// logs its configuration, the optimizers and the dataset by itself. Other ranks do nothing.
func (t *Trainer) LogParams(params map[string]any) error {
	if t.logger == nil {
		return nil
	}
	return t.logger.Params(params)
}

// logParams logs the hyper-parameters of the training: first those that the user has chosen.
func (r *run) logParams(training data.Dataset) error {
	chosen, others := r.config.params(r.ownSchedule())
	for _, o := range r.task.objectives {
		maps.Copy(chosen, optimizerParams(o))
	}
	if r.rates.built {
		maps.Copy(chosen, r.rates.params())
	}
	maps.Copy(others, map[string]any{
		"dataset": training.Name(), "examples": training.Len(), "world_size": r.world.Size(), "devices": r.world.Size() * r.world.Devices(),
		"platform": r.world.Platform(),
	})
	if err := r.LogParams(chosen); err != nil {
		return err
	}
	return r.LogParams(others)
}

// params returns the fields of the configuration by name, as text: those that the program, a flag,
// the environment or a file has set, and those with their defaults. Fields without a value are left
// out.
func (c *Config) params(schedule string) (chosen, defaults map[string]any) {
	chosen, defaults = map[string]any{}, map[string]any{}
	for name, f := range c.fields() {
		value := text(f.value)
		switch {
		case value == "" || !isParam(name) || schedule != "" && strings.HasPrefix(name, "schedule."):
		case c.chosen[name]:
			chosen[name] = value
		default:
			defaults[name] = value
		}
	}
	if schedule != "" {
		chosen["schedule"] = schedule
	}
	return chosen, defaults
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
