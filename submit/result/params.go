package result

import (
	"slices"

	"gonbatch/internal/rundir"
)

// Params returns the hyper-parameters of the training run, by name, as text: those that the program
// logged with Trainer.LogParams, and those of the trainer. Of a run with several training runs, it
// returns those that have the same value in all of them; Training selects one.
func (r Run) Params() map[string]string {
	all := map[string]string{}
	for _, p := range r.params() {
		all[p.Name] = p.Value
	}
	return all
}

// params returns the hyper-parameters in the order in which they were logged.
func (r Run) params() []rundir.Param {
	r.mustBeThere()
	trainings, err := rundir.ReadParams(r.dir)
	check(err)
	if r.training != "" {
		trainings = slices.DeleteFunc(trainings, func(p rundir.Params) bool { return p.Training != r.training })
	}
	if len(trainings) == 0 {
		return nil
	}
	return slices.DeleteFunc(trainings[0].Params, func(p rundir.Param) bool {
		return slices.ContainsFunc(trainings[1:], func(other rundir.Params) bool { return !slices.Contains(other.Params, p) })
	})
}
