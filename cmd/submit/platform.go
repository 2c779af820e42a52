package main

import (
	"cmp"
	"context"
	"os"
	"path/filepath"

	"gonbatch/internal/plugin"
	"gonbatch/submit"
)

// platform is the XLA platform that the programs get: the one asked for, else cuda for a job with GPUs, or for one rank on
// this machine if that has a GPU. Where it is "" they run on CPUs.
func (o *submitOptions) platform(hasGPU func() bool) string {
	switch {
	case o.Platform != "":
		return o.Platform
	case o.Local && o.Tasks == 1 && hasGPU(), !o.Local && o.GPUs.count > 0:
		return plugin.CUDA
	}
	return ""
}

// gpuFiles are there where NVIDIA's driver has found a GPU.
var gpuFiles = []string{"/dev/nvidia0", "/dev/nvidiactl"}

// hasGPU tells whether this machine has a GPU that programs can use.
func hasGPU() bool {
	for _, path := range gpuFiles {
		if _, err := os.Stat(path); err != nil {
			return false
		}
	}
	return true
}

// provided is where the XLA plugin is: in a folder to stage it from, or in one to use in place. CUDA's is used in place, for
// it finds NVIDIA's libraries by their places beside it.
type provided struct{ stage, inPlace string }

// providePlugin installs the plugin if it is missing. Where no platform is decided, the CPU's always works.
func providePlugin(ctx context.Context, a *app, platform string) (provided, error) {
	opts := plugin.Options{Platform: cmp.Or(platform, plugin.CPU), Progress: a.err, Getenv: a.getenv}
	dir, err := plugin.Ensure(ctx, opts)
	if err != nil || platform != plugin.CUDA {
		return provided{stage: dir}, err
	}
	real, err := filepath.EvalSymlinks(dir)
	return provided{inPlace: real}, err
}

// previewPlugin is the folder that the programs would use in place; it installs nothing.
func previewPlugin(a *app, spec submit.JobSpec) (string, error) {
	if spec.Platform != plugin.CUDA {
		return "", nil
	}
	dir, err := plugin.Where(plugin.Options{Platform: plugin.CUDA, Getenv: a.getenv})
	if err != nil {
		return "", err
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		return real, nil
	}
	return dir, nil
}
