package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/spf13/cobra"

	"gonbatch/submit"
	"gonbatch/submit/report"
)

// frontEnds are the commands that can show a notebook, the best first.
var frontEnds = []string{"jupyter-lab", "jupyter-notebook", "code"}

func newOpenCommand(a *app) *cobra.Command {
	with, asJSON := "", false
	cmd := &cobra.Command{
		Use:   "open RUN",
		Short: "Open a run's executed notebook in Jupyter",
		Long: `open shows the notebook of a run with its outputs, in JupyterLab, Jupyter Notebook or VS Code,
whichever is on PATH first. While the job runs, the notebook grows: reload it, and don't save it.

` + aboutRun,
		Example: `  submit open 4711
  submit open 4711 --with "jupyter notebook"`,
		Args: oneArg("RUN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, r, err := a.findRun(cmd, args[0])
			if err != nil {
				return err
			}
			if asJSON {
				return report.Write(a.Out, true, report.Executed{Run: r.Dir.Name(), Notebook: r.Dir.Executed()})
			}
			return a.open(r.Dir.Executed(), with)
		},
	}
	cmd.Flags().StringVar(&with, "with", "", "command that shows the notebook, whose path follows it")
	cmd.Flags().BoolVar(&asJSON, "json", false, "only print where the notebook is, as JSON")
	addRunRoot(cmd)
	return cmd
}

// open shows a notebook by a command, "" for the best that there is, until the command ends.
func (a *app) open(notebook, with string) error {
	if _, err := os.Stat(notebook); err != nil {
		return fmt.Errorf("the run has no executed notebook: %w", err)
	}
	command := []string{"sh", "-c", with + ` "$0"`, notebook}
	for _, name := range frontEnds {
		if _, err := exec.LookPath(name); with == "" && err == nil {
			command, with = []string{name, notebook}, name
		}
	}
	if with == "" {
		return submit.Usagef("there is no JupyterLab, Jupyter Notebook or VS Code on PATH: give a command by --with, or open %s", notebook)
	}
	shown := exec.Command(command[0], command[1:]...)
	shown.Env, shown.Stdin, shown.Stdout, shown.Stderr = a.Environ, os.Stdin, a.Out, a.Err
	err := shown.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return fmt.Errorf("%s: %w", with, err)
	}
	return err
}
