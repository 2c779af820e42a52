package main

import (
	"context"
	"fmt"
	"path/filepath"

	"al.essio.dev/pkg/shellescape"
	"github.com/spf13/cobra"

	"gonbatch/internal/rundir"
	"gonbatch/submit"
)

func newExportCommand(a *app) *cobra.Command {
	var out string
	var script bool
	var opts exportOptions
	cmd := &cobra.Command{
		Use:   "export -o DIR notebook.ipynb",
		Short: "Export a notebook as a Go module, with one main package for each main cell",
		Example: "  submit export -o mnist notebooks/mnist.ipynb && cd mnist && ls\n" +
			"  submit export --script --cell train notebooks/mnist.ipynb > train.go",
		Args: oneArg("notebook"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if script {
				return exportScript(cmd.Context(), a, args[0], out, opts)
			}
			if out == "" {
				return submit.Usagef("no folder for the module: give -o DIR, or --script for one file")
			}
			module, err := opts.export(cmd.Context(), a, args[0])
			if err != nil {
				return err
			}
			if err := module.Write(out); err != nil {
				return err
			}
			for _, step := range module.Steps {
				command := fmt.Sprintf("cd %s && go run ./%s", shellescape.Quote(out), step.Name)
				if step.Shell {
					command = "bash " + shellescape.Quote(filepath.Join(out, step.Script()))
				}
				if _, err := fmt.Fprintln(a.Out, command); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "folder for the module, or file for --script")
	cmd.Flags().BoolVar(&script, "script", false, "write one program as a single Go file, to standard output or to the file of -o")
	opts.addFlags(cmd.Flags(), "export")
	return cmd
}

// exportScript writes the only program of a notebook as one file.
func exportScript(ctx context.Context, a *app, notebook, out string, o exportOptions) error {
	o.Script = true
	module, err := o.export(ctx, a, notebook)
	if err != nil {
		return err
	}
	if out == "" {
		_, err := a.Out.Write(module.Script())
		return err
	}
	return rundir.WriteFileAtomic(out, module.Script(), 0o644)
}
