package ranktest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"gonbatch/distributed/pjrt/testplugin"
	"gonbatch/internal/machine"
	"gonbatch/internal/plugin"
	"gonbatch/internal/rundir"
)

// CUDA names a variable for machines with GPUs: the folder of XLA's plugin for them. Tests then
// compute on these GPUs in place of the CPU and of GPUs that the test plugin plays. Those that need
// more are skipped.
const CUDA = "TEST_CUDA_PLUGIN"

// useGPUs makes this process and the ranks that it starts compute on the machine's GPUs, and
// reports whether CUDA is set.
func useGPUs() bool {
	dir := os.Getenv(CUDA)
	if dir != "" {
		_ = os.Setenv(rundir.EnvPlatform, plugin.CUDA) //nolint:forbidigo // the ranks inherit it
		_ = os.Setenv(rundir.EnvPluginDir, dir)        //nolint:forbidigo // the ranks inherit it
	}
	return dir != ""
}

// NeedGPUs skips a test whose ranks need more GPUs than this machine has. Start does so too, but
// only in the test's own goroutine.
func NeedGPUs(t *testing.T, ranks int, env []string) {
	t.Helper()
	if os.Getenv(CUDA) == "" {
		return
	}
	need := ranks
	for _, variable := range env {
		if n, found := strings.CutPrefix(variable, rundir.EnvDevices+"="); found && ranks == 1 {
			need, _ = strconv.Atoi(n) // 0 for all of them.
		}
	}
	if have, _ := filepath.Glob("/dev/nvidia[0-9]*"); len(have) < need {
		machine.Lacks(t, fmt.Sprintf("it needs %d GPUs, and this machine has %d", need, len(have)))
	}
}

// OnGPUs makes the ranks run with the test plugin, on a machine whose /dev has n GPUs. It needs
// root. With CUDA, it uses the machine's own GPUs.
func (l Launcher) OnGPUs(t *testing.T, n int) Launcher {
	t.Helper()
	if os.Getenv(CUDA) != "" {
		return l.With(" on GPUs")
	}
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
	return filepath.Join(machine.Source(), "distributed", "ranktest", "gpus.sh")
}

// Environ are the variables that the ranks have in addition to those of the test.
func (l Launcher) Environ() []string { return l.env }
