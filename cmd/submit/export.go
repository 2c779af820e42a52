package main

import (
	"github.com/spf13/cobra"

	"gonbatch/submit"
	"gonbatch/submit/config"
	"gonbatch/submit/report"
	"gonbatch/submit/stage"
)

func newExportCommand(a *app) *cobra.Command {
	var out string
	var script bool
	var nb stage.Notebook
	cmd := &cobra.Command{
		Use:   "export -o DIR notebook.ipynb",
		Short: "Export a notebook as a Go module, with one main package for each main cell",
		Example: "  submit export -o mnist notebooks/mnist.ipynb && cd mnist && ls\n" +
			"  submit export --script --cell train notebooks/mnist.ipynb > train.go",
		Args: oneArg("notebook"),
	}
	config.NonEmpty(cmd.Flags(), &out, "path", "output", "o", "", "folder for the module, or file for --script")
	cmd.Flags().BoolVar(&script, "script", false, "write one program as a single Go file, to standard output or to the file of -o")
	addNotebookFlags(cmd.Flags(), &nb, "export")
	return reporting(a, cmd, func(cmd *cobra.Command, args []string) (report.Report, error) {
		if err := nb.Open(args[0]); err != nil {
			return nil, err
		}
		switch {
		case script:
			return nb.WriteScript(cmd.Context(), a.Shell, out)
		case out == "":
			return nil, submit.Usagef("no folder for the module: give -o DIR, or --script for one file")
		}
		return nb.WriteModule(cmd.Context(), a.Shell, out)
	})
}
