package local

import (
	"slices"
	"strconv"

	"gonbatch/internal/plugin"
	"gonbatch/internal/rundir"
	"gonbatch/submit"
)

// ownEnv returns the variables, as NAME=VALUE, that gonbatch adds to the environment of a cell's
// ranks.
func (s *start) ownEnv(cell string) []string {
	env := s.spec.RankEnv(defaultDevices(s.spec))
	env.Cell, env.Start, env.Stopped = cell, s.number, s.stoppedFile()
	return texts(env.Vars())
}

// userEnv returns the user's variables: the job's, then the cell's. A later one wins.
func userEnv(spec submit.JobSpec, cell rundir.Cell) []string {
	return texts(slices.Concat(rundir.SortedVars(spec.Env), rundir.SortedVars(cell.Env)))
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

// stoppedFile is the file that a rank's launcher creates when its program was told to stop and has
// saved.
func (s *start) stoppedFile() string { return s.spec.RunDir.Stopped(strconv.Itoa(s.number)) }
