package stage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"strings"

	"gonbatch/internal/rundir"
	"gonbatch/internal/source"
	"gonbatch/internal/userdir"
	"gonbatch/submit"
	"gonbatch/submit/build"
	"gonbatch/submit/export"
	"gonbatch/submit/export/input"
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
	if err := n.CheckArgs(shell, module, job); err != nil {
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
// the cluster, and a file of the trainer's configuration with mistyped names. It warns about
// arguments that the program may accept after all. It doesn't check a cell's own arguments alone:
// they work, or fail, as in the notebook.
func (n Notebook) CheckArgs(shell submit.Shell, m *export.Module, spec submit.JobSpec) error {
	for _, cell := range m.Programs() {
		if len(spec.Args) == 0 || !cell.TakesArgs() {
			continue
		}
		problem, sure := m.ArgsProblem(cell, spec.CellArgs(cell), filepath.Dir(n.File.Path))
		if err := judge(shell, m.Notebook+", "+place(cell), problem, sure); err != nil {
			return err
		}
	}
	return nil
}

func place(cell rundir.Cell) string { return fmt.Sprintf("cell %s (%s)", cell.Label(), cell.Name) }

// judge returns the error of arguments that a program wouldn't accept, or warns if it may.
func judge(shell submit.Shell, place, problem string, sure bool) error {
	switch {
	case problem == "":
	case sure:
		return submit.Usagef("%s: %s", place, problem)
	default:
		shell.Warn("%s: %s", place, problem)
	}
	return nil
}

// CheckMoreArgs is CheckArgs for a run that is resumed with more arguments. It reads the programs
// in the run directory, and returns the values of their flags.
func CheckMoreArgs(ctx context.Context, shell submit.Shell, spec submit.JobSpec) (flags map[string]string, err error) {
	sourceDir, err := source.Dir(ctx, source.Options{Getenv: shell.Getenv})
	if err != nil {
		return nil, err
	}
	flags = map[string]string{}
	for _, cell := range spec.Cells {
		text, err := rundir.ReadFile(filepath.Join(spec.RunDir.Sources(), cell.Source()))
		if !cell.TakesArgs() || errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		program := input.ReadProgram(string(text), sourceDir)
		for _, arg := range spec.MoreArgs {
			switch name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "="); {
			case !strings.HasPrefix(arg, "-"):
			case name == "h" || name == "help":
				return nil, submit.Usagef("%s: with %s, its program would end without training", place(cell), arg)
			case name == "checkpoint.resume" || name == "checkpoint.dir":
				return nil, submit.Usagef("%s: %s can't be changed in a run that trains on from its checkpoints: submit the notebook again", place(cell), arg)
			}
		}
		problem, sure := program.Problem(cell.Name, spec.CellArgs(cell), spec.WorkDir)
		if err := judge(shell, place(cell), problem, sure); err != nil {
			return nil, err
		}
		maps.Copy(flags, program.Values(spec.CellArgs(cell)))
	}
	return flags, nil
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
