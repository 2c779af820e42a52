package stage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gonbatch/internal/plugin"
	"gonbatch/internal/rundir"
	"gonbatch/internal/sharedlib"
	"gonbatch/submit"
	"gonbatch/submit/loader"
)

// OneDNN returns the value of JobSpec.OneDNN with which the ranks compute as programs on this
// machine do. Here these open the library that GONBATCH_ONEDNN names, or else the loader's, or else
// the one that gonbatch has installed. A GONBATCH_ONEDNN that names no oneDNN 3 is an error;
// without that variable, no library is none. A job that computes on GPUs, or that has its own
// GONBATCH_ONEDNN, gets no value.
func OneDNN(ctx context.Context, shell submit.Shell, spec submit.JobSpec) (string, error) {
	if _, own := spec.Env[rundir.EnvOneDNN]; own || spec.Platform == plugin.CUDA {
		return "", nil
	}
	if shell.Getenv(rundir.EnvOneDNN) == rundir.OneDNNOff {
		return rundir.OneDNNOff, nil
	}
	path, err := findOneDNN(ctx, shell)
	if err != nil || path == "" {
		return "", err
	}
	return submit.OneDNNStaged, nil
}

// provideOneDNN installs oneDNN if programs on the CPU would find none. Without it they only take
// longer, so a failure is a warning.
func provideOneDNN(ctx context.Context, shell submit.Shell) {
	if shell.Getenv(rundir.EnvOneDNN) != "" {
		return
	}
	if path, err := findOneDNN(ctx, shell); path != "" || err != nil {
		return
	}
	if _, err := plugin.EnsureOneDNN(ctx, plugin.Options{Progress: shell.Err, Getenv: shell.Getenv}); err != nil {
		shell.Warn("%v; until then, training on CPUs takes longer", err)
	}
}

// TakeOneDNN decides about the library again, because Prepare may have installed one, and makes
// Stage put it into the run directory if the job uses it. The specs are those of one job.
func (p *Prepared) TakeOneDNN(ctx context.Context, shell submit.Shell, specs ...*submit.JobSpec) (err error) {
	for _, spec := range specs {
		if spec.OneDNN, err = OneDNN(ctx, shell, *spec); err != nil {
			return err
		}
		if spec.OneDNN == submit.OneDNNStaged {
			p.oneDNN, err = findOneDNN(ctx, shell)
		}
	}
	return err
}

// findOneDNN returns the library's absolute path; "" if there is none.
func findOneDNN(ctx context.Context, shell submit.Shell) (string, error) {
	libraries := loader.New(ctx, shell.Runner, shell.Getenv)
	name := shell.Getenv(rundir.EnvOneDNN)
	if name == "" {
		if path, err := firstOneDNN(libraries.Find(plugin.OneDNNName)); err == nil {
			return path, nil
		}
		return plugin.FindOneDNN(plugin.Options{Getenv: shell.Getenv}), nil
	}
	paths := []string{name}
	if !strings.Contains(name, "/") {
		paths = libraries.Find(name)
	}
	path, err := firstOneDNN(paths)
	if err != nil {
		return "", fmt.Errorf("%s=%s: %w\nset it to the path of %s, or to %s; if only the nodes have the library, unset it and submit with --env %s=%s",
			rundir.EnvOneDNN, name, err, plugin.OneDNNName, rundir.OneDNNOff, rundir.EnvOneDNN, name)
	}
	return path, nil
}

// firstOneDNN returns the absolute path of the first file that is a oneDNN 3 for this machine, or
// why the last one isn't.
func firstOneDNN(paths []string) (string, error) {
	err := errors.New("the loader finds no library of this name")
	for _, path := range paths {
		if err = checkOneDNN(path); err != nil {
			continue
		}
		if path, err = filepath.EvalSymlinks(path); err == nil {
			return filepath.Abs(path)
		}
	}
	return "", err
}

// checkOneDNN refuses a library that the programs would refuse.
func checkOneDNN(path string) error {
	if err := sharedlib.Check(path, plugin.OneDNN); err != nil {
		return err
	}
	needs, err := sharedlib.Needs(path)
	if slices.ContainsFunc(needs, func(name string) bool { return strings.HasPrefix(name, "libsycl.") }) {
		return fmt.Errorf("%s was built for SYCL: use one that was built for OpenMP or TBB", path)
	}
	return err
}

// stageOneDNN puts the library into the run directory. One that needs others of its own, which it
// may find only from its folder, is used in place, by a symbolic link.
func (p Prepared) stageOneDNN(dir rundir.Dir) error {
	if p.oneDNN == "" {
		return nil
	}
	needs, err := sharedlib.Needs(p.oneDNN)
	switch {
	case err != nil:
		return err
	case len(needs) > 0:
		return os.Symlink(p.oneDNN, dir.OneDNN())
	}
	return p.store(dir.Root()).Link(p.oneDNN, dir.OneDNN())
}
