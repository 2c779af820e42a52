package main

import (
	"errors"
	"os"

	"github.com/spf13/cobra"

	"gonbatch/kernel"
	"gonbatch/submit/config"
	"gonbatch/submit/report"
)

func newKernelCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "kernel", Short: "The Jupyter kernel for Go notebooks",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newKernelInstallCommand(a), newKernelUninstallCommand(a), newKernelDoctorCommand(a), newKernelWarmCommand(a))
	for _, name := range kernel.Commands {
		cmd.AddCommand(newKernelOwnCommand(a, name))
	}
	return cmd
}

// kernelPlace is where the kernel is installed.
type kernelPlace struct {
	user, sysPrefix bool
	prefix          string
}

func (p *kernelPlace) addFlags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&p.user, "user", false, "for the current user (the default)")
	config.NonEmpty(cmd.Flags(), &p.prefix, "path", "prefix", "", "", "for the Python environment in this folder, such as a virtual environment")
	cmd.Flags().BoolVar(&p.sysPrefix, "sys-prefix", false, "for the Python environment of the python3 on PATH")
	cmd.MarkFlagsMutuallyExclusive("user", "prefix", "sys-prefix")
}

func (p *kernelPlace) options(a *app) kernel.InstallOptions {
	return kernel.InstallOptions{Prefix: p.prefix, SysPrefix: p.sysPrefix, Getenv: a.Getenv}
}

func newKernelUninstallCommand(a *app) *cobra.Command {
	var place kernelPlace
	cmd := &cobra.Command{
		Use: "uninstall", Short: "Remove the kernel and its programs", Args: cobra.NoArgs,
		Long: `uninstall removes the kernelspec and everything that install put next to it. It keeps what submit
uses too, in your cache (gonbatch's source, XLA's plugin, Go modules), and the history of cells, in
your state folder.`,
	}
	place.addFlags(cmd)
	return reporting(a, cmd, func(*cobra.Command, []string) (report.Report, error) {
		dir, err := kernel.Uninstall(place.options(a))
		return report.Kernel{State: "removed", Folder: dir}, err
	})
}

func newKernelDoctorCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "doctor", Short: "Check that the kernel has everything it needs", Args: cobra.NoArgs}
	asJSON := addJSON(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		opts, err := kernel.FindOptions(cmd.Context(), a.Environ, a.Err)
		if err != nil {
			return err
		}
		found := kernel.Doctor(opts)
		if err := report.Write(a.Out, *asJSON, found); err != nil || found.OK {
			return err
		}
		return errors.New("the kernel cannot run: fix the items marked WRONG")
	}
	return cmd
}

// newKernelOwnCommand returns a command that is not for users: Jupyter or a session calls it.
func newKernelOwnCommand(a *app, name string) *cobra.Command {
	return &cobra.Command{
		Use: name, Hidden: true, DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			code, err := kernel.Command(cmd.Context(), name, args, a.Environ, a.Err)
			if code != 0 {
				os.Exit(code)
			}
			return err
		},
	}
}
