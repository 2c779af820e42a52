package corpus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"gonbatch/internal/bounded"
	"gonbatch/internal/nbformat"
	"gonbatch/internal/rundir"
	"gonbatch/submit/export"
	"gonbatch/submit/export/nbcell"
)

// runRoot is where submit creates its run directories, in the notebook's folder.
const runRoot = "runs"

// Submit runs notebooks with `submit --local`.
type Submit struct {
	// Program is the submit command. Root is the source tree that it exports against.
	Program, Root string
	// Env is the command's environment.
	Env []string
}

// Run is the result of one `submit --local`.
type Run struct {
	// Output is everything that submit wrote, and Code is its exit code.
	Output string
	Code   int
	// Dir is the run directory; its path is "" if submit rejected the notebook.
	Dir rundir.Dir
	// Files are the files that the notebook wrote.
	Files map[string]string
}

// Submit runs a notebook in dir, a new folder.
func (s Submit) Submit(ctx context.Context, c Case, dir string) (run Run, err error) {
	if err := c.stage(dir); err != nil {
		return run, err
	}
	cmd := exec.CommandContext(ctx, s.Program, "--local", "--run-root", runRoot, filepath.Base(c.Path))
	cmd.Dir, cmd.Env = dir, s.Env
	out, err := bounded.CombinedOutput(cmd)
	run.Output = string(out)
	if run.Code, err = codeOf(err); err != nil {
		return run, err
	}
	dirs, err := rundir.List(filepath.Join(dir, runRoot))
	if err != nil {
		return run, err
	}
	if len(dirs) > 0 {
		run.Dir = dirs[0]
	}
	run.Files, err = newFiles(c, dir)
	return run, err
}

// codeOf returns the exit code of a command.
func codeOf(err error) (int, error) {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0, nil
	case errors.As(err, &exit) && exit.ExitCode() >= 0:
		return exit.ExitCode(), nil
	}
	return 0, err
}

// Observe runs the programs of a run directory again, in dir, one after the other like the
// launcher, but with standard output and standard error separate: the logs of a run mix them.
func (s Submit) Observe(ctx context.Context, c Case, run rundir.Dir, dir string) (o Observed, err error) {
	if err := c.stage(dir); err != nil {
		return o, err
	}
	nb, err := nbformat.Read(filepath.Join(dir, filepath.Base(c.Path)))
	if err != nil {
		return o, err
	}
	module, err := export.FromNotebook(nb, export.Options{SourceDir: s.Root})
	if err != nil {
		return o, err
	}
	var failed bool
	for _, cell := range nb.Cells {
		runs := slices.Clone(module.Cells)
		runs = slices.DeleteFunc(runs, func(made rundir.Cell) bool { return made.Number != cell.Number })
		if cell.Type != nbformat.Code && len(runs) == 0 {
			continue
		}
		seen := Cell{Number: cell.Number, Status: OK}
		if failed || nbcell.Skips(cell) {
			seen.Status = NotRun
			o.Cells = append(o.Cells, seen)
			continue
		}
		for _, made := range runs {
			if err := s.run(ctx, made, run, dir, &seen); err != nil {
				return o, fmt.Errorf("cell %s: %w", made.Name, err)
			}
			if seen.Code != 0 {
				seen.Status, failed = Failed, !made.MayFail
				break
			}
		}
		seen.Stdout, seen.Stderr = stable(seen.Stdout, nil), stable(seen.Stderr, nil)
		o.Cells = append(o.Cells, seen)
	}
	o.Files, err = newFiles(c, dir)
	return o, err
}

// run runs one cell of the job and adds what it did to the cell of the notebook.
func (s Submit) run(ctx context.Context, made rundir.Cell, run rundir.Dir, dir string, cell *Cell) error {
	cmd := exec.CommandContext(ctx, run.CellProgram(made), made.Args...)
	cmd.Env = append(slices.Clone(s.Env), rundir.EnvDir+"="+run.Path())
	for name, value := range made.Env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	cmd.Dir = filepath.Join(dir, made.Dir)
	if info, err := os.Stat(cmd.Dir); err != nil || !info.IsDir() {
		cell.Code = 1 // The launcher reports it; the program does not start.
		return nil
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	code, err := codeOf(bounded.Run(cmd))
	cell.Stdout += strings.ToValidUTF8(stdout.String(), "\ufffd")
	cell.Stderr += strings.ToValidUTF8(stderr.String(), "\ufffd")
	cell.Code = code
	return err
}
