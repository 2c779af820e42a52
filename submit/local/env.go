package local

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"gonbatch/internal/rundir"
	"gonbatch/submit"
)

// ownEnv is gonbatch's part of what every rank gets beside what is there, as NAME=VALUE. The run
// directory and the step come last, by whoever starts the program.
func ownEnv(spec submit.JobSpec, start int) []string {
	vars := []string{
		"GONBATCH_PLUGIN_DIR=" + spec.Plugins(),
		fmt.Sprintf("%s=%d", rundir.EnvRequeue, rundir.RequeueCode),
		fmt.Sprintf("%s=%d", rundir.EnvRestarts, start-1),
		rundir.EnvStopped + "=" + stoppedFile(spec, start),
	}
	for _, v := range [][2]string{
		{"GONBATCH_DATA", spec.DataDir}, {"GONBATCH_DEVICES", firstOf(spec.Devices, defaultDevices(spec))},
		{"GONBATCH_MPI_LIBRARY", spec.MPILibrary}, {"GONBATCH_PLATFORM", spec.Platform},
	} {
		if v[1] != "" {
			vars = append(vars, v[0]+"="+v[1])
		}
	}
	return vars
}

// userEnv is the user's part: the job's and the step's own. A later one wins.
func userEnv(spec submit.JobSpec, step rundir.Step) (vars []string) {
	for _, group := range []map[string]string{spec.Env, step.Env} {
		for _, name := range slices.Sorted(maps.Keys(group)) {
			vars = append(vars, name+"="+group[name])
		}
	}
	return vars
}

// defaultDevices: a rank alone drives all devices of the machine, one of several drives one.
func defaultDevices(spec submit.JobSpec) string {
	if spec.Tasks() == 1 {
		return "all"
	}
	return "1"
}

// stoppedFile is what a rank's launcher leaves when its program was told to stop and has saved.
func stoppedFile(spec submit.JobSpec, start int) string {
	return spec.RunDir.Stopped(strconv.Itoa(start))
}
