package plugin

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"gonbatch/internal/fetch"
	"gonbatch/internal/rundir"
)

// The CUDA plugin by JAX's authors (PJRT API 0.116), which go-xla's installer also uses.
var cudaWheel = fetch.Wheel{
	Requirement: "jax-cuda13-pjrt==0.12.0.1",
	SHA256:      "5899bb6177eda86ea532afb9a26794f2bdd04966f6a01f9028266b16c2b6cf90",
	Size:        134922808,
	Member:      "jax_plugins/xla_cuda13/xla_cuda_plugin.so",
}

// cudaLibraries pins the NVIDIA libraries that the plugin opens: those that
// jax-cuda13-plugin[with-cuda] requires.
//
//go:embed cuda-requirements.txt
var cudaLibraries string

// nvidia gets the CUDA plugin and NVIDIA's libraries through the site's pip. They must have the
// same layout as with go-xla's own installer, in a folder named go-xla/nvidia, because they find
// one another by relative paths.
var nvidia = way{
	version: "0.12.0.1",
	what:    cudaWheel.Command() + ", and NVIDIA's libraries",
	sub:     "go-xla/nvidia",
	get:     getNvidia,
}

func getNvidia(ctx context.Context, path string, opts Options) error {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		return fmt.Errorf("there is no CUDA plugin for %s/%s; set %s=cpu", runtime.GOOS, runtime.GOARCH, rundir.EnvPlatform)
	}
	options := fetch.Options{Progress: opts.Progress}
	dir := filepath.Dir(path)
	if err := fetch.PipInstall(ctx, "NVIDIA's libraries", cudaLibraries, filepath.Dir(dir), options); err != nil {
		return err
	}
	if err := fetch.PipWheel(ctx, cudaWheel, path, options); err != nil {
		return err
	}
	return linkCUDA(dir)
}

// cudaLinks are the links that go-xla's installer adds for programs and libraries that look
// elsewhere than where the wheels put files: XLA for ptxas, cuDNN for cuBLAS. Both paths are
// relative to the folder nvidia.
var cudaLinks = []struct{ at, to string }{
	{"bin/ptxas", "../cu13/bin/ptxas"},
	{"../../libcublas.so.13", "go-xla/nvidia/cu13/lib/libcublas.so.13"},
	{"../../libcublasLt.so.13", "go-xla/nvidia/cu13/lib/libcublasLt.so.13"},
}

func linkCUDA(dir string) error {
	for _, link := range cudaLinks {
		at := filepath.Join(dir, link.at)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return err
		}
		if err := os.Remove(at); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if err := os.Symlink(link.to, at); err != nil {
			return err
		}
		if _, err := os.Stat(at); err != nil {
			return fmt.Errorf("NVIDIA's wheels have an unexpected layout: %w", err)
		}
	}
	return nil
}
