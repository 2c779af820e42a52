package stage

import (
	"context"
	"fmt"

	"gonbatch/internal/userdir"
	"gonbatch/submit"
	"gonbatch/submit/build"
	"gonbatch/submit/export"
	"gonbatch/submit/report"
)

// Check does the parts of a job's submission that need no cluster and no run directory.
func (n Notebook) Check(ctx context.Context, shell submit.Shell, job submit.JobSpec) (report.Check, error) {
	module, err := n.Read(ctx, shell)
	if err != nil {
		return report.Check{}, err
	}
	check := report.Check{
		Notebook: module.Notebook, Cells: job.WithArgs(module.Cells),
		Warnings: texts(module.Warnings), Notes: texts(module.Notes),
	}
	if err := CheckArgs(shell, module, job); err != nil {
		return check.Refused(err), err
	}
	if module, err = n.resolve(ctx, shell, module); err != nil {
		return check.Refused(err), err
	}
	cache, err := userdir.Cache(shell.Getenv)
	if err != nil {
		return check.Refused(err), err
	}
	err = inModule(module, func(dir string) error {
		problems, err := build.Check(ctx, dir, module, build.Options{CacheDir: cache, Env: shell.Environ})
		check.Vet = texts(problems)
		return err
	})
	return check.Refused(err), err
}

// CheckArgs refuses arguments that a program would not accept, which would otherwise show only on
// the cluster. It warns about arguments that the program may accept after all. It doesn't check a
// cell's own arguments alone: they work, or fail, as in the notebook.
func CheckArgs(shell submit.Shell, m *export.Module, spec submit.JobSpec) error {
	for _, cell := range m.Programs() {
		if len(spec.Args) == 0 || !cell.TakesArgs() {
			continue
		}
		problem, sure := m.ArgsProblem(cell, spec.CellArgs(cell))
		switch {
		case problem == "":
		case sure:
			return submit.Usagef("%s, cell %s (%s): %s", m.Notebook, cell.Label(), cell.Name, problem)
		default:
			shell.Warn("%s, cell %s (%s): %s", m.Notebook, cell.Label(), cell.Name, problem)
		}
	}
	return nil
}

// texts returns the findings as strings.
func texts[T fmt.Stringer](findings []T) (all []string) {
	for _, f := range findings {
		all = append(all, f.String())
	}
	return all
}

// Params lists the notebook's parameters and flags.
func (n Notebook) Params(ctx context.Context, shell submit.Shell) (report.Params, error) {
	module, err := n.Export(ctx, shell)
	if err != nil {
		return report.Params{}, err
	}
	params := report.Params{Notebook: module.Notebook, Parameters: []report.Param{}, Flags: []report.Param{}}
	for _, p := range module.Parameters {
		params.Parameters = append(params.Parameters, report.Param{Name: p.Name, Type: p.Type, Default: p.Default, Cell: p.Number})
	}
	for _, f := range module.Flags {
		params.Flags = append(params.Flags, report.Param{Name: f.Name, Type: f.Type, Default: f.Default, Usage: f.Usage, Cell: f.Number})
	}
	return params, nil
}
