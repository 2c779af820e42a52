package stage

import (
	"cmp"
	"context"
	"os"
	"path/filepath"

	"gonbatch/internal/plugin"
	"gonbatch/internal/userdir"
	"gonbatch/submit"
	"gonbatch/submit/build"
	"gonbatch/submit/export"
	"gonbatch/submit/scratch"
)

// Prepared is a notebook that was read, exported and compiled, ready for a run directory.
type Prepared struct {
	Notebook Notebook
	Module   *export.Module
	// Reuse is the reused part of an earlier run; nil for a run of all cells.
	Reuse *Reuse
	// PluginDir is the folder of an XLA plugin that is used in place; "" if it is staged.
	PluginDir string

	// cache is the user's cache folder, with programs and the hashes of files.
	cache string
	build *build.Result
	// plugin is the folder from which the XLA plugin is staged; "" if it is used in place.
	plugin string
	// oneDNN is the oneDNN library to stage; "" if there is none.
	oneDNN string
}

// Prepare finds the notebook's modules, compiles it, and installs the XLA plugin for a platform on
// this machine, because compute nodes have no network.
func Prepare(ctx context.Context, shell submit.Shell, n Notebook, module *export.Module, platform string) (Prepared, error) {
	module, err := n.resolve(ctx, shell, module)
	p := Prepared{Notebook: n, Module: module}
	if err != nil {
		return p, err
	}
	if p.cache, err = userdir.Cache(shell.Getenv); err != nil {
		return p, err
	}
	err = inModule(module, func(dir string) (err error) {
		p.build, err = build.Build(ctx, dir, module, build.Options{CacheDir: p.cache, Env: shell.Environ})
		return err
	})
	if err != nil {
		return p, err
	}
	for _, name := range p.build.Changed {
		shell.Warn("the program of cell %s was compiled again: something had written into its file, which run directories have links to; "+
			"runs of this notebook may have the changed program (submit resume refuses it)", name)
	}
	return p, p.providePlugin(ctx, shell, platform)
}

// inModule calls f with a temporary folder of the module's files.
func inModule(module *export.Module, f func(dir string) error) error {
	dir, err := scratch.Make(scratch.Module)
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	if err := module.Write(dir); err != nil {
		return err
	}
	return f(dir)
}

// providePlugin installs the plugin if it is missing. CUDA's plugin is used in place, because it
// finds NVIDIA's libraries relative to its own path. Without a platform it installs the CPU's
// plugin, which always works. With the CPU's, it installs oneDNN.
func (p *Prepared) providePlugin(ctx context.Context, shell submit.Shell, platform string) error {
	opts := plugin.Options{Platform: cmp.Or(platform, plugin.CPU), Progress: shell.Err, Getenv: shell.Getenv}
	dir, err := plugin.Ensure(ctx, opts)
	if err != nil {
		return err
	}
	if platform != plugin.CUDA {
		p.plugin = dir
		provideOneDNN(ctx, shell)
		return nil
	}
	p.PluginDir, err = filepath.EvalSymlinks(dir)
	return err
}

// PreviewPlugin returns the folder of the plugin that the programs would use in place. It installs
// nothing.
func PreviewPlugin(shell submit.Shell, platform string) (string, error) {
	if platform != plugin.CUDA {
		return "", nil
	}
	dir, err := plugin.Where(plugin.Options{Platform: plugin.CUDA, Getenv: shell.Getenv})
	if err != nil {
		return "", err
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		return real, nil
	}
	return dir, nil
}
