package local

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"gonbatch/rundir"
	"gonbatch/submit"
)

// env is what every rank of a step gets beside what is there, as NAME=VALUE; a later one wins. The run directory and
// the step come last, by whoever starts the program.
func env(spec submit.JobSpec, step submit.Step, start int) []string {
	vars := []string{
		"GONBATCH_PLUGIN_DIR=" + spec.Plugins(),
		fmt.Sprintf("%s=%d", rundir.EnvRequeue, rundir.RequeueCode),
		fmt.Sprintf("%s=%d", rundir.EnvRestarts, start-1),
		rundir.EnvStopped + "=" + stoppedFile(spec, start),
	}
	add := func(name, value string) {
		if value != "" {
			vars = append(vars, name+"="+value)
		}
	}
	add("GONBATCH_DATA", spec.DataDir)
	add("GONBATCH_DEVICES", firstOf(spec.Devices, defaultDevices(spec)))
	add("GONBATCH_MPI_LIBRARY", spec.MPILibrary)
	add("GONBATCH_PLATFORM", spec.Platform)
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
