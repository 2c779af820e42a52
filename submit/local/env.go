package local

import (
	"strconv"

	"gonbatch/internal/plugin"
	"gonbatch/internal/rundir"
	"gonbatch/submit"
)

// ownEnv returns the variables, as NAME=VALUE, that gonbatch adds to the environment of a cell's
// ranks in a start of the run.
func (s *start) ownEnv(cell string, number int) []string {
	env := s.spec.RankEnv(defaultDevices(s.spec))
	env.Cell, env.Start, env.Stopped = cell, number, s.spec.RunDir.Stopped(strconv.Itoa(number))
	return texts(env.Vars())
}

// userEnv returns the user's variables under names that no launcher knows. A rank gives them their
// own names back, for its program only.
func (s *start) userEnv() []string {
	all := texts(rundir.SortedVars(s.spec.Env))
	for i, v := range all {
		all[i] = rundir.EnvUserPrefix + v
	}
	return all
}

func texts(vars []rundir.Var) []string {
	all := make([]string, len(vars))
	for i, v := range vars {
		all[i] = v.String()
	}
	return all
}

// defaultDevices returns how many devices a rank drives: all GPUs of the machine if it is the only
// rank, else one. One device of the CPU computes with all cores, and faster than several do, each
// of which has its own copy of the weights.
func defaultDevices(spec submit.JobSpec) string {
	if spec.Tasks() == 1 && spec.Platform == plugin.CUDA {
		return "all"
	}
	return "1"
}
