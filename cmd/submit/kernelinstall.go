package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

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
pinned version. It fetches XLA's plugin for CPUs, then, in the background, fetches and compiles the
Go modules that notebooks import, so that the first cell that imports GoMLX is as fast as the others
and needs no network. To repair an installation, install again.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return runKernelInstall(cmd.Context(), a, opts) },
	}
	opts.place.addFlags(cmd)
	cmd.Flags().BoolVar(&opts.specOnly, "spec-only", false, "write only the kernelspec; the programs must be on PATH")
	cmd.Flags().BoolVar(&opts.wait, "wait", false, "wait until the modules are fetched and compiled")
	return cmd
}

func runKernelInstall(ctx context.Context, a *app, opts kernelInstall) error {
	setup := kernel.Setup{Spec: opts.place.options(a), SpecOnly: opts.specOnly, Wait: opts.wait, Environ: a.Environ, Progress: a.Err}
	dir, err := setup.Install(ctx, a.sourceDir)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.Out, "kernel installed: %s\n", dir)
	return err
}

func newKernelWarmCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "warm", Short: "Fetch and compile the Go modules that notebooks import", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			source, err := a.sourceDir(cmd.Context())
			if err != nil {
				return err
			}
			if err := kernel.Warm(cmd.Context(), kernel.WarmOptions{SourceDir: source, Environ: a.Environ}); err != nil {
				return err
			}
			_, err = fmt.Fprintln(a.Out, "Go modules are in the module cache and compiled")
			return err
		},
	}
}
