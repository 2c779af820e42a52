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

// installTools installs GoNB, goimports and gopls next to the kernelspec, which is in dir, and
// prints a line for each. It returns the variables that they need in the kernelspec's environment:
// see InstallOptions.Env. gopls is optional: if it can't be installed, installTools prints that and
// continues.
func installTools(ctx context.Context, dir, sourceDir string, environ []string, progress io.Writer) (map[string]string, error) {
	goCommand, err := findGo(environ)
	if err != nil {
		return nil, err
	}
	pins, err := tool.Pins(sourceDir)
	if err != nil {
		return nil, err
	}
	bin := filepath.Join(dir, binDir)
	search := append(filepath.SplitList(environment(environ).get("PATH")), installDirs(goCommand, sourceDir)...)
	for _, pin := range pins {
		fmt.Fprintf(progress, "%s %s\n", pin.Name, pin.Version)
		err := tool.Install(ctx, pin, tool.Options{Dir: bin, SourceDir: sourceDir, Go: goCommand, Environ: environ, Search: search})
		if err != nil && !pin.Optional {
			return nil, err
		}
		if err != nil {
			fmt.Fprintf(progress, "%v\nThe kernel works without it, but can't complete code.\n", err)
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
