package main

import (
	"github.com/spf13/cobra"

	"gonbatch/kernel"
	"gonbatch/submit/report"
)

func newKernelInstallCommand(a *app) *cobra.Command {
	var place kernelPlace
	setup := kernel.Setup{Environ: a.Environ, Progress: a.Err}
	cmd := &cobra.Command{
		Use: "install", Short: "Install the kernel for Jupyter with everything it needs", Args: cobra.NoArgs,
		Long: `install writes Jupyter's kernelspec and installs GoNB, goimports and gopls next to it, each at a
pinned version. It fetches XLA's plugin for CPUs, then, in the background, fetches and compiles the
Go modules that notebooks import, so that the first cell that imports GoMLX is as fast as the others
and needs no network. To repair an installation, install again.`,
	}
	place.addFlags(cmd)
	cmd.Flags().BoolVar(&setup.SpecOnly, "spec-only", false, "write only the kernelspec; the programs must be on PATH")
	cmd.Flags().BoolVar(&setup.Wait, "wait", false, "wait until the modules are fetched and compiled")
	return reporting(a, cmd, func(cmd *cobra.Command, _ []string) (report.Report, error) {
		setup.Spec = place.options(a)
		dir, err := setup.Install(cmd.Context())
		return report.Kernel{State: "installed", Folder: dir}, err
	})
}

func newKernelWarmCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "warm", Short: "Fetch and compile the Go modules that notebooks import", Args: cobra.NoArgs}
	return reporting(a, cmd, func(cmd *cobra.Command, _ []string) (report.Report, error) {
		return report.Packages{Packages: kernel.WarmPackages}, kernel.Warm(cmd.Context(), a.Environ)
	})
}
