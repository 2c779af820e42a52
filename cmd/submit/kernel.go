package main

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"gonbatch/kernel"
	"gonbatch/plugin"
)

func newKernelCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "kernel", Short: "The Jupyter kernel for Go notebooks",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newKernelInstallCommand(a), newKernelRunCommand(a))
	return cmd
}

func newKernelInstallCommand(a *app) *cobra.Command {
	var opts kernel.InstallOptions
	cmd := &cobra.Command{
		Use: "install", Short: "Tell Jupyter about the kernel", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			dir, err := kernel.Install(opts)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(a.out, "kernel installed: %s\n", dir)
			return err
		},
	}
	cmd.Flags().StringVar(&opts.Prefix, "prefix", "", "Python environment to install for, such as a virtual environment's folder")
	return cmd
}

func newKernelRunCommand(a *app) *cobra.Command {
	opts := kernel.Options{Environ: a.environ, Log: a.err}
	cmd := &cobra.Command{
		Use: "run", Short: "Run a session; Jupyter calls this", Args: cobra.NoArgs, Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if opts.SourceDir, err = sourceDir(cmd.Context(), a); err != nil {
				return err
			}
			// Without a plugin the session starts all the same: a cell that needs one says what is missing.
			if found, err := plugin.Find(plugin.Options{Platform: plugin.CPU, Getenv: a.getenv}); err == nil {
				opts.PluginDir = filepath.Dir(found.Path)
			}
			return kernel.Run(cmd.Context(), opts)
		},
	}
	cmd.Flags().StringVar(&opts.ConnectionFile, "connection-file", "", "Jupyter's connection file")
	return cmd
}
