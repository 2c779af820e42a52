package submit

import (
	"slices"

	"gonbatch/internal/rundir"
)

// Command starts a step's program on each of its ranks, by the run's rank script where the job is
// recorded.
func (s JobSpec) Command(step rundir.Step) []string {
	command := append([]string{s.RunDir.StepProgram(step)}, s.StepArgs(step)...)
	if s.Record {
		command = append([]string{s.RunDir.RankScript()}, command...)
	}
	return command
}

// StepArgs are the arguments of a step's program: the step's own and the job's.
func (s JobSpec) StepArgs(step rundir.Step) []string {
	if !step.TakesArgs() {
		return step.Args
	}
	return slices.Concat(step.Args, s.Args)
}
