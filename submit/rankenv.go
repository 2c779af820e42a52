package submit

import (
	"cmp"

	"gonbatch/internal/rundir"
)

// RankEnv returns the part of a rank's environment that is the same for all cells and starts.
// devices is the default for a spec that doesn't set them.
func (s JobSpec) RankEnv(devices string) rundir.Env {
	return rundir.Env{
		Dir: s.RunDir, Devices: cmp.Or(s.Devices, devices), Platform: s.Platform, PluginDir: s.plugins(), MPILibrary: s.MPILibrary,
		OneDNN: s.oneDNN(), Data: s.DataDir, RequeueCode: rundir.RequeueCode,
	}
}
