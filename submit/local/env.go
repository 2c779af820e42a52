package local

import (
	"slices"
	"strconv"

	"gonbatch/internal/rundir"
	"gonbatch/submit"
)

// ownEnv is gonbatch's part of what the ranks of a cell get beside what is there, as NAME=VALUE.
func (s *start) ownEnv(cell string) []string {
	env := s.spec.RankEnv(defaultDevices(s.spec))
	env.Cell, env.Start, env.Stopped = cell, s.number, s.stoppedFile()
	return texts(env.Vars())
}

// userEnv is the user's part: the job's and the cell's own. A later one wins.
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

// defaultDevices: a rank alone drives all devices of the machine, one of several drives one.
func defaultDevices(spec submit.JobSpec) string {
	if spec.Tasks() == 1 {
		return "all"
	}
	return "1"
}

// stoppedFile is what a rank's launcher leaves when its program was told to stop and has saved.
func (s *start) stoppedFile() string { return s.spec.RunDir.Stopped(strconv.Itoa(s.number)) }
