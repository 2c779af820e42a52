package submit

import (
	"cmp"

	"gonbatch/internal/rundir"
)

// RankEnv is what every rank of the job finds in its environment, whatever the cell and the start.
// A rank drives the given devices where the spec does not say.
func (s JobSpec) RankEnv(devices string) rundir.Env {
	return rundir.Env{
		Dir: s.RunDir, Devices: cmp.Or(s.Devices, devices), Platform: s.Platform, PluginDir: s.Plugins(), MPILibrary: s.MPILibrary,
		Data: s.DataDir, RequeueCode: rundir.RequeueCode,
	}
}
