package main

import (
	"fmt"
	"path/filepath"

	"al.essio.dev/pkg/shellescape"
	"github.com/spf13/cobra"
)

func newExportCommand(a *app) *cobra.Command {
	var out string
	var opts exportOptions
	cmd := &cobra.Command{
		Use:     "export -o DIR notebook.ipynb",
		Short:   "Write a notebook as a Go module, one main package for each main cell",
		Example: "  submit export -o mnist notebooks/mnist.ipynb && cd mnist && ls",
		Args:    oneArg("notebook"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if out == "" {
				return usage("no folder for the module: give -o DIR")
			}
			module, err := exportNotebook(cmd.Context(), a, args[0], opts)
			if err != nil {
				return err
			}
			if err := module.Write(out); err != nil {
				return err
			}
			for _, step := range module.Steps {
				command := fmt.Sprintf("cd %s && go run ./%s", shellescape.Quote(out), step.Package)
				if step.IsShell() {
					command = "bash " + shellescape.Quote(filepath.Join(out, step.Script))
				}
				if _, err := fmt.Fprintln(a.out, command); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "folder for the module")
	opts.addFlags(cmd.Flags(), "export")
	return cmd
}
