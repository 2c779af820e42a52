package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"gonbatch/internal/plugin"
	"gonbatch/kernel"
)

// kernelInstall are the options of "submit kernel install".
type kernelInstall struct {
	place    kernelPlace
	specOnly bool
	wait     bool
}

func newKernelInstallCommand(a *app) *cobra.Command {
	var opts kernelInstall
	cmd := &cobra.Command{
		Use: "install", Short: "Install the kernel for Jupyter with everything it needs", Args: cobra.NoArgs,
		Long: `install writes Jupyter's kernelspec and installs GoNB, goimports and gopls beside it, each at a
pinned version. It fetches XLA's plugin for CPUs, then, in the background, fetches and compiles the Go
modules that notebooks import, so that the first cell that imports GoMLX is as fast as the others and
needs no network. To repair an installation, install again.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return runKernelInstall(cmd.Context(), a, opts) },
	}
	opts.place.addFlags(cmd)
	cmd.Flags().BoolVar(&opts.specOnly, "spec-only", false, "write only the kernelspec; the programs must be on PATH")
	cmd.Flags().BoolVar(&opts.wait, "wait", false, "wait until the modules are fetched and compiled")
	return cmd
}

func runKernelInstall(ctx context.Context, a *app, opts kernelInstall) error {
	spec, err := opts.place.options(a)
	if err != nil {
		return err
	}
	dir, err := kernel.Install(spec)
	if err != nil {
		return err
	}
	if !opts.specOnly {
		if err := installAround(ctx, a, opts, spec, dir); err != nil {
			return fmt.Errorf("%w\nThe kernelspec is in %s; run submit kernel install again to fix the rest", err, dir)
		}
	}
	_, err = fmt.Fprintf(a.out, "kernel installed: %s\n", dir)
	return err
}

// installAround installs what the kernel needs beside its kernelspec.
func installAround(ctx context.Context, a *app, opts kernelInstall, spec kernel.InstallOptions, dir string) error {
	source, err := sourceDir(ctx, a)
	if err != nil {
		return err
	}
	spec.Env, err = kernel.InstallTools(ctx, kernel.ToolOptions{Dir: dir, SourceDir: source, Environ: a.environ, Progress: a.err})
	if err != nil {
		return err
	}
	if _, err := kernel.Install(spec); err != nil {
		return err
	}
	if _, err := plugin.Ensure(ctx, plugin.Options{Platform: plugin.CPU, Progress: a.err, Getenv: a.getenv}); err != nil {
		fmt.Fprintf(a.err, "XLA's plugin: %v\nCells that run on XLA will try again.\n", err)
	}
	if opts.wait {
		return kernel.Warm(ctx, kernel.WarmOptions{SourceDir: source, Environ: a.environ})
	}
	return warmInBackground(a, dir)
}

// warmInBackground starts "submit kernel warm", which outlives this command.
func warmInBackground(a *app, dir string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if copied := filepath.Join(dir, filepath.Base(self)); fileExists(copied) {
		self = copied // go run removes its own program
	}
	name := filepath.Join(dir, "warm.log")
	log, err := os.Create(name)
	if err != nil {
		return err
	}
	defer log.Close() //nolint:errcheck // the program that writes it has its own handle
	cmd := exec.Command(self, "kernel", "warm")
	cmd.Env, cmd.Stdout, cmd.Stderr = a.environ, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	fmt.Fprintf(a.err, "Go modules are fetched and compiled in the background: process %d, %s\n", cmd.Process.Pid, name)
	return cmd.Process.Release()
}

func fileExists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

func newKernelWarmCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "warm", Short: "Fetch and compile the Go modules that notebooks import", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			source, err := sourceDir(cmd.Context(), a)
			if err != nil {
				return err
			}
			if err := kernel.Warm(cmd.Context(), kernel.WarmOptions{SourceDir: source, Environ: a.environ}); err != nil {
				return err
			}
			_, err = fmt.Fprintln(a.out, "Go modules are in the module cache and compiled")
			return err
		},
	}
}
