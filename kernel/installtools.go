package kernel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"gonbatch/internal/rundir"
	"gonbatch/kernel/tool"
)

// toolOptions configure installTools.
type toolOptions struct {
	// Dir is the kernelspec's folder, as Install returned it. SourceDir is the root of gonbatch's
	// source tree.
	Dir, SourceDir string
	// Environ is the environment of the go command, as in os.Environ.
	Environ []string
	// Progress receives a line for each program.
	Progress io.Writer
}

// installTools installs GoNB, goimports and gopls next to the kernelspec. It returns the variables
// that they need in the kernelspec's environment: see InstallOptions.Env. gopls is optional: if it
// can't be installed, InstallTools prints that and continues.
func installTools(ctx context.Context, opts toolOptions) (map[string]string, error) {
	goCommand, err := findGo(opts.Environ)
	if err != nil {
		return nil, err
	}
	pins, err := tool.Pins(opts.SourceDir)
	if err != nil {
		return nil, err
	}
	bin := filepath.Join(opts.Dir, binDir)
	search := append(filepath.SplitList(environment(opts.Environ).get("PATH")), installDirs(goCommand, opts.SourceDir)...)
	for _, pin := range pins {
		fmt.Fprintf(opts.Progress, "%s %s\n", pin.Name, pin.Version)
		err := tool.Install(ctx, pin, tool.Options{Dir: bin, SourceDir: opts.SourceDir, Go: goCommand, Environ: opts.Environ, Search: search})
		if err != nil && !pin.Optional {
			return nil, err
		}
		if err != nil {
			fmt.Fprintf(opts.Progress, "%v\nThe kernel works without it, but can't complete code.\n", err)
		}
	}
	return map[string]string{rundir.EnvTools: bin, rundir.EnvGo: goCommand}, nil
}

// findGo looks for the go command on PATH, then where the kernelspec says.
func findGo(environ []string) (string, error) {
	env := environment(environ)
	if command, err := lookPath("go", env.get("PATH")); err == nil {
		return command, nil
	}
	if command := env.get(rundir.EnvGo); command != "" {
		if found, err := lookPath(filepath.Base(command), filepath.Dir(command)); err == nil {
			return found, nil
		}
		return "", fmt.Errorf("%s=%s: there is no go command: run submit kernel install again", rundir.EnvGo, command)
	}
	return "", errors.New("go not found on PATH, and the kernel compiles cells with it: install Go from https://go.dev/dl")
}
