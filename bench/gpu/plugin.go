package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"gonbatch/internal/bounded"
	"gonbatch/internal/plugin"
	"gonbatch/internal/rundir"
)

// cuda is XLA's plugin for GPUs on this machine.
type cuda struct {
	dir  string // dir has pjrt_c_api_cuda_plugin.so.
	from string // from says whose it is.
	data string // data has ptxas and libdevice, if the plugin doesn't find them by itself.
}

// environ are the variables with which a program finds the plugin and what it needs.
func (c cuda) environ() []string {
	env := []string{rundir.EnvPluginDir + "=" + c.dir}
	if c.data != "" && !strings.Contains(os.Getenv("XLA_FLAGS"), "xla_gpu_cuda_data_dir") {
		env = append(env, strings.TrimSpace("XLA_FLAGS="+os.Getenv("XLA_FLAGS")+" --xla_gpu_cuda_data_dir="+c.data))
	}
	return env
}

// findCUDA finds the plugin where a program of gonbatch would, or else that of JAX in Python, which
// it links into a folder below shadow. It installs nothing.
func findCUDA(ctx context.Context, python, shadow string) (cuda, error) {
	found, err := plugin.Find(plugin.Options{Platform: plugin.CUDA})
	if err == nil {
		return cuda{dir: filepath.Dir(found.Path), from: found.Origin}, nil
	}
	if os.Getenv(rundir.EnvPluginDir) != "" {
		return cuda{}, err
	}
	wheel, pythonErr := wheelOf(ctx, python)
	if pythonErr != nil {
		return cuda{}, errors.Join(err, pythonErr, errors.New("or download it: -install"))
	}
	c, err := linkWheel(wheel, shadow)
	c.from = "JAX of " + python
	return c, err
}

// wheelScript prints the folder of the newest of JAX's plugins for CUDA.
const wheelScript = `
import importlib.util
for name in "xla_cuda13", "xla_cuda12":
    try:
        spec = importlib.util.find_spec("jax_plugins." + name)
    except ImportError:
        continue
    if spec and spec.submodule_search_locations:
        print(list(spec.submodule_search_locations)[0])
        break
`

func wheelOf(ctx context.Context, python string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute) // The folders of Python may be on a file system that hangs.
	defer cancel()
	cmd := exec.Command(python, "-c", wheelScript)
	cmd.Stderr = os.Stderr
	var out strings.Builder
	cmd.Stdout = &out
	if err := bounded.RunContext(ctx, cmd); err != nil {
		return "", fmt.Errorf("-python %s, to look for JAX's plugin: %w", python, err)
	}
	wheel := strings.TrimSpace(out.String())
	if wheel == "" {
		return "", fmt.Errorf("-python %s: it has neither jax-cuda13-pjrt nor jax-cuda12-pjrt", python)
	}
	return wheel, nil
}

// linkWheel makes a folder in which the plugin of a wheel has the name that go-xla looks for. The
// plugin finds NVIDIA's libraries at $ORIGIN/../../nvidia, and the loader takes $ORIGIN from the
// link's path, not from the file's. So links at the same distance do, and nothing is written into
// the Python's own folders.
func linkWheel(wheel, shadow string) (cuda, error) {
	library := filepath.Join(wheel, "xla_cuda_plugin.so")
	if _, err := os.Stat(library); err != nil {
		return cuda{}, fmt.Errorf("JAX's plugin: %w", err)
	}
	dir, nvidia := filepath.Join(shadow, "jax_plugins", filepath.Base(wheel)), filepath.Join(wheel, "..", "..", "nvidia")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return cuda{}, err
	}
	for at, to := range map[string]string{filepath.Join(dir, plugin.FileName(plugin.CUDA)): library, filepath.Join(shadow, "nvidia"): nvidia} {
		if err := os.Symlink(to, at); err != nil {
			return cuda{}, err
		}
	}
	return cuda{dir: dir, data: dataDir(filepath.Join(nvidia, "cu13"), filepath.Join(nvidia, "cuda_nvcc"), os.Getenv("CUDA_HOME"), "/usr/local/cuda")}, nil
}

// dataDir is the first folder with NVIDIA's assembler and its library of functions; empty if none
// has both, and XLA must look by itself.
func dataDir(folders ...string) string {
	for _, folder := range folders {
		_, assembler := os.Stat(filepath.Join(folder, "bin", "ptxas"))
		_, library := os.Stat(filepath.Join(folder, "nvvm", "libdevice", "libdevice.10.bc"))
		if folder != "" && assembler == nil && library == nil {
			return folder
		}
	}
	return ""
}
