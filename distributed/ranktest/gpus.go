package ranktest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"

	"gonbatch/distributed/pjrt/testplugin"
	"gonbatch/internal/machine"
	"gonbatch/internal/plugin"
	"gonbatch/internal/rundir"
)

// OnGPUs makes the ranks run with the test plugin, on a machine whose /dev has n GPUs. It needs
// root.
func (l Launcher) OnGPUs(t *testing.T, n int) Launcher {
	t.Helper()
	if _, err := exec.LookPath("unshare"); err != nil || os.Getuid() != 0 {
		machine.Lacks(t, "mount namespaces need root and util-linux")
	}
	l.within = func(int) []string {
		return []string{"unshare", "--mount", "--propagation", "private", GPUScript(), strconv.Itoa(n)}
	}
	return l.With(" on GPUs", rundir.EnvPlatform+"="+plugin.CUDA, rundir.EnvPluginDir+"="+testplugin.Build(t))
}

// Within makes another command start the ranks, or mpirun with all ranks.
func (l Launcher) Within(command []string) Launcher {
	l.within = func(int) []string { return command }
	return l
}

// Command returns a command that runs a program where the ranks run, without their variables.
func (l Launcher) Command(ctx context.Context, program ...string) *exec.Cmd {
	return l.command(ctx, 0, program)
}

// GPUScript returns the path of the script that runs a command on a machine with GPUs. Its
// arguments are the number of GPUs and the command.
func GPUScript() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "gpus.sh")
}

// Environ are the variables that the ranks have in addition to those of the test.
func (l Launcher) Environ() []string { return l.env }
