package tool

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"gonbatch/internal/rundir"
)

// Options say where and how Install installs.
type Options struct {
	// Dir is the folder for the programs.
	Dir string
	// SourceDir is gonbatch's source, whose go.mod and go.sum pin GoNB, goimports and their
	// dependencies.
	SourceDir string
	// Go is the go command, Environ its environment, as in os.Environ.
	Go      string
	Environ []string
	// Search are folders that may already have the programs.
	Search []string
}

// Install installs a program, unless it is already there. It copies one of the same version, or
// builds it, which may fetch modules. Calling it again is harmless.
func Install(ctx context.Context, p Pin, opts Options) error {
	target := filepath.Join(opts.Dir, p.Name)
	if p.Is(target) {
		return nil
	}
	if err := os.MkdirAll(opts.Dir, 0o755); err != nil {
		return fmt.Errorf("install %s: %w", p.Name, err)
	}
	for _, dir := range opts.Search {
		if file := filepath.Join(dir, p.Name); p.Is(file) {
			if err := Copy(target, file); err != nil {
				return fmt.Errorf("install %s: %w", p.Name, err)
			}
			return nil
		}
	}
	if err := build(ctx, p, opts, target); err != nil {
		return fmt.Errorf("install %s %s: %w", p.Name, p.Version, err)
	}
	return nil
}

// build builds a program in a temporary folder, so that Dir never contains a partial program.
func build(ctx context.Context, p Pin, opts Options, target string) error {
	tmp, err := os.MkdirTemp(opts.Dir, ".new-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp) //nolint:errcheck // a temporary folder
	args := []string{"install", p.Package}
	dir := opts.SourceDir
	if p.Optional { // it is not one of gonbatch's own tools
		args[1] += "@" + p.Version
		dir = tmp
	}
	cmd := exec.CommandContext(ctx, opts.Go, args...)
	cmd.Dir = dir
	cmd.Env = append(Outside(opts.Environ, "-buildvcs=false"), "GOBIN="+tmp, "PWD="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s in %s: %w\n%s\nit needs the Go modules from a proxy: go env GOPROXY names it", strings.Join(append([]string{"go"}, args...), " "),
			dir, err, bytes.TrimSpace(out))
	}
	built := filepath.Join(tmp, p.Name)
	if got := p.VersionOf(built); got != p.Version {
		return fmt.Errorf("go install built version %q", got)
	}
	return os.Rename(built, target)
}

// Copy atomically makes target a copy of a program.
func Copy(target, file string) error {
	program, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return rundir.WriteFileAtomic(target, program, 0o755)
}
