package estimate

import (
	"fmt"

	"gonbatch/internal/forecast"
	"gonbatch/internal/plugin"
	"gonbatch/submit"
)

// Target returns the GPU that a job gets: the named one, or without a name that of the type of the
// job's GPUs.
func Target(name string, gpus submit.GPUs) (forecast.GPU, error) {
	if name != "" {
		return forecast.Find(name)
	}
	if gpus.Kind == "" {
		return forecast.GPU{}, fmt.Errorf(`name your GPUs, with "target: h100" in submit.yaml or --gpus-per-node h100:%d`, gpus.Count)
	}
	gpu, err := forecast.OfType(gpus.Kind)
	if err != nil {
		return gpu, fmt.Errorf("%w (target: in submit.yaml names your GPUs)", err)
	}
	return gpu, nil
}

// NeedCompiler returns an error if XLA's compiler for GPUs is not installed.
func NeedCompiler(shell submit.Shell, gpu forecast.GPU) error {
	dir, err := plugin.FindCompiler(plugin.Options{Getenv: shell.Getenv})
	if err == nil && dir == "" {
		err = fmt.Errorf("XLA's compiler for GPUs (257 MB) is not installed: submit check --target %s NOTEBOOK downloads it", gpu.Name)
	}
	return err
}
