package plugin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"gonbatch/internal/fetch"
	"gonbatch/internal/rundir"
)

// compiler gets what compiles for a GPU where there is none: the CUDA plugin, and of NVIDIA's
// libraries only their compiler (257 MB of downloads, 690 MB installed).
var compiler = way{
	version: "compiler-" + nvidia.version,
	what:    cudaWheel.Command() + ", and NVIDIA's compiler",
	sub:     nvidia.sub,
	get:     getCompiler,
}

// EnsureCompiler returns a folder that has the CUDA plugin, and NVIDIA's compiler in its folder
// cu13: enough to compile for a GPU, not to run on one. It is that of the whole plugin if there is
// one; else it is installed first. It blocks and may be called at once, as Ensure.
func EnsureCompiler(ctx context.Context, opts Options) (dir string, err error) {
	opts.Platform = CUDA
	if opts, err = opts.withDefaults(); err != nil {
		return "", err
	}
	have := func() bool {
		dir = findCompiler(opts)
		return dir != ""
	}
	err = fetch.Once(ctx, filepath.Join(opts.Dir, compiler.version), opts.Progress, have, func() error {
		dir = compiler.dir(opts)
		if err := compiler.install(ctx, opts); err != nil {
			return fmt.Errorf("%s: %w", compiler.what, err)
		}
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("plugin: %w", err)
	}
	return dir, nil
}

// findCompiler is the folder that has both; empty if there is none.
func findCompiler(opts Options) string {
	dirs := []string{compiler.dir(opts)}
	if p, err := find(opts); err == nil {
		if path, err := filepath.EvalSymlinks(p.Path); err == nil {
			dirs = append([]string{filepath.Dir(path)}, dirs...)
		}
	}
	for _, dir := range dirs {
		if fetch.Have(filepath.Join(dir, FileName(CUDA)), 0) && fetch.Have(filepath.Join(dir, "cu13", "bin", "ptxas"), 0) {
			return dir
		}
	}
	return ""
}

// BesideCUDA returns the environment of a process that computes on the CPU, for jobs that compute
// on GPUs: a folder of plugins that has none for CPUs is not for it.
func BesideCUDA(environ []string) []string {
	for _, variable := range environ {
		dir, ok := strings.CutPrefix(variable, rundir.EnvPluginDir+"=")
		if path, _ := library(dir, CPU); ok && dir != "" && path == "" {
			return slices.DeleteFunc(slices.Clone(environ), func(v string) bool { return v == variable })
		}
	}
	return environ
}

func getCompiler(ctx context.Context, path string, opts Options) error {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		return fmt.Errorf("there is no CUDA plugin for %s/%s: forecast on linux/amd64", runtime.GOOS, runtime.GOARCH)
	}
	options := fetch.Options{Progress: opts.Progress}
	dir := filepath.Dir(path)
	if err := fetch.PipInstall(ctx, "NVIDIA's compiler", requirementsOf("nvidia-cuda-nvcc", "nvidia-nvvm"), filepath.Dir(dir), options); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, "cu13", "bin", "ptxas")); err != nil {
		return errors.Join(errors.New("NVIDIA's wheels have an unexpected layout"), err)
	}
	return fetch.PipWheel(ctx, cudaWheel, path, options)
}

// requirementsOf are the lines of cudaLibraries that pin these packages.
func requirementsOf(names ...string) string {
	var lines strings.Builder
	for line := range strings.Lines(cudaLibraries) {
		for _, name := range names {
			if strings.HasPrefix(line, name+"==") {
				lines.WriteString(line)
			}
		}
	}
	return lines.String()
}
