package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"al.essio.dev/pkg/shellescape"
	"github.com/spf13/cobra"

	"gonbatch/submit/build"
	"gonbatch/submit/export"
)

const checkLong = `check exports and compiles a notebook without submitting it. It lists the cells that a job would
run, the findings of go vet, and anything in the notebook that may surprise you in a job. It
succeeds if submit would accept the notebook.`

func newCheckCommand(a *app) *cobra.Command {
	var opts exportOptions
	cmd := &cobra.Command{
		Use:     "check notebook.ipynb",
		Short:   "Check a notebook without submitting it",
		Long:    checkLong,
		Example: "  submit check notebooks/mnist.ipynb",
		Args:    oneArg("notebook"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := interruptible(cmd.Context())
			defer stop()
			return runCheck(ctx, a, args[0], opts)
		},
	}
	opts.addFlags(cmd.Flags(), "check")
	return cmd
}

// runCheck does all of a submission that needs no cluster and no run directory.
func runCheck(ctx context.Context, a *app, notebook string, o exportOptions) error {
	module, err := readModule(ctx, a, notebook, o)
	if err != nil {
		return err
	}
	if err := describeSteps(a.out, module); err != nil {
		return err
	}
	var problems []build.Problem
	err = inModule(module, func(dir string) (err error) {
		problems, err = build.Check(ctx, dir, module, build.Options{Env: a.environ})
		return err
	})
	if err != nil {
		return err
	}
	if err := describeFindings(a.out, module, problems); err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.out, "%s would be submitted\n", module.Notebook)
	return err
}

// describeSteps lists the cells that a job would run, and how.
func describeSteps(w io.Writer, m *export.Module) error {
	rows := [][]string{{"NAME", "CELL", "RUNS", "WHAT"}}
	for _, step := range m.Steps {
		where, what := "on every rank", "program "+shellescape.QuoteCommand(append([]string{step.Name}, step.Args...))
		if step.IsShell() {
			where, what = "once, on the first node", step.Title
		}
		if step.Dir != "" {
			what += " (in " + step.Dir + ")"
		}
		rows = append(rows, []string{step.Name, fmt.Sprint(step.Cell), where, what})
	}
	return table(w, fmt.Sprintf("a job of %s runs %s", m.Notebook, count(len(m.Steps), "cell")), rows)
}

// describeFindings lists what is to be known about the cells.
func describeFindings(w io.Writer, m *export.Module, problems []build.Problem) error {
	var b strings.Builder
	for _, p := range problems {
		fmt.Fprintf(&b, "vet: %s\n", p)
	}
	for _, warning := range m.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", warning)
	}
	for _, note := range m.Notes {
		fmt.Fprintf(&b, "note: %s\n", note)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// count is a number of things.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// inModule calls f with a folder that has the module's files, and is gone afterwards.
func inModule(module *export.Module, f func(dir string) error) error {
	dir, err := os.MkdirTemp("", modulePattern)
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	if err := module.Write(dir); err != nil {
		return err
	}
	return f(dir)
}
