package stage

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gonbatch/internal/plugin"
	"gonbatch/internal/rundir"
	"gonbatch/submit"
)

// Program is a compiled cell, in the cache.
type Program struct {
	Cell rundir.Cell
	Path string
	Dir  string // Dir is the folder that the cell runs in.
}

// Program compiles the one program of the notebook's job, for a process of this machine.
func (n Notebook) Program(ctx context.Context, shell submit.Shell, job submit.JobSpec) (Program, error) {
	shell.Environ = plugin.BesideCUDA(shell.Environ)
	module, err := n.Read(ctx, shell)
	if err != nil {
		return Program{}, err
	}
	cells := module.Programs()
	if len(cells) != 1 {
		names := make([]string, len(cells))
		for i, cell := range cells {
			names[i] = cell.Name
		}
		return Program{}, submit.Usagef("--target forecasts one program, and the notebook has %d (%s): pick the one that trains with --cell", len(cells), strings.Join(names, ", "))
	}
	p, err := Prepare(ctx, shell, n, module, plugin.CPU)
	if err != nil {
		return Program{}, err
	}
	origin, err := n.origin()
	if err != nil {
		return Program{}, err
	}
	job.Cells = Cells(p.Module, filepath.Dir(origin), shell.Getenv("HOME"))
	job.Cells = slices.DeleteFunc(job.Cells, func(c rundir.Cell) bool { return c.Shell })
	cell := p.hashedCells(job)[0]
	dir := cmp.Or(cell.Dir, filepath.Dir(origin))
	if _, err := os.Stat(dir); err != nil {
		return Program{}, fmt.Errorf("cell %s runs in a folder that does not exist: %w", cell.Name, err)
	}
	return Program{Cell: cell, Path: p.build.Programs[cell.Name], Dir: dir}, nil
}
