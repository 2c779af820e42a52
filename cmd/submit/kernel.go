package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"gonbatch/internal/plugin"
	"gonbatch/internal/rundir"
	"gonbatch/internal/source"
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
	cmd.AddCommand(newKernelInstallCommand(a), newKernelUninstallCommand(a), newKernelDoctorCommand(a), newKernelRunCommand(a), newKernelBuildCommand(a), newKernelGuardCommand(a), newKernelStreamCommand(a), newKernelWarmCommand(a))
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
		Long: `uninstall removes the kernelspec and everything that install put beside it. It keeps what submit
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
		opts, err := kernelOptions(cmd, a)
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

func newKernelRunCommand(a *app) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use: "run", Short: "Run a session; Jupyter calls this", Args: cobra.NoArgs, Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			opts, err := kernelOptions(cmd, a)
			opts.ConnectionFile = file
			if err != nil {
				return kernel.Refuse(cmd.Context(), opts, err)
			}
			err = kernel.Run(cmd.Context(), opts)
			if notStarted := new(kernel.NotStarted); errors.As(err, &notStarted) {
				return kernel.Refuse(cmd.Context(), opts, err)
			}
			return err
		},
	}
	cmd.Flags().StringVar(&file, "connection-file", "", "Jupyter's connection file")
	return cmd
}

func newKernelGuardCommand(a *app) *cobra.Command {
	var session string
	cmd := &cobra.Command{
		Use: "guard", Short: "End the processes of a killed session; the session calls this", Args: cobra.NoArgs, Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error { return kernel.Guard(cmd.InOrStdin(), session, a.Environ) },
	}
	cmd.Flags().StringVar(&session, "session", "", "the session's folder")
	return cmd
}

func newKernelBuildCommand(a *app) *cobra.Command {
	var opts kernel.BuildOptions
	cmd := &cobra.Command{
		Use: "build PROGRAM [FLAG...]", Short: "Build a cell; the kernel's go command calls this", Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Args, opts.Environ = args, a.Environ
			return kernel.Build(cmd.Context(), opts)
		},
	}
	cmd.Flags().StringVar(&opts.Session, "session", "", "the session's folder")
	cmd.Flags().StringVar(&opts.Go, "go", "", "the go command")
	return cmd
}

func newKernelStreamCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "stream COMMAND...", Short: "Run a command of a cell; the kernel calls this", Hidden: true,
		RunE: func(_ *cobra.Command, args []string) error {
			code, err := kernel.Stream(args, a.Getenv(rundir.EnvCellDir), a.Environ)
			if err == nil {
				os.Exit(code)
			}
			return err
		},
	}
}

// sourceDir returns the source tree of gonbatch's own library, with which the programs are
// compiled.
func (a *app) sourceDir(ctx context.Context) (string, error) {
	return source.Dir(ctx, source.Options{Getenv: a.Getenv})
}

// kernelOptions returns the options of a session. A session can start without a plugin: a cell that
// needs one says what is missing.
func kernelOptions(cmd *cobra.Command, a *app) (opts kernel.Options, err error) {
	opts = kernel.Options{Environ: a.Environ, Log: a.Err}
	if opts.SourceDir, err = a.sourceDir(cmd.Context()); err != nil {
		return opts, err
	}
	if found, err := plugin.Find(plugin.Options{Platform: plugin.CPU, Getenv: a.Getenv}); err == nil {
		opts.PluginDir = filepath.Dir(found.Path)
	}
	return opts, nil
}
