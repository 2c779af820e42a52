package stage

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
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

// Program compiles the notebook's one program, for a process of this machine.
func (n Notebook) Program(ctx context.Context, shell submit.Shell) (Program, error) {
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
	cell := p.Module.Programs()[0]
	origin, err := n.origin()
	if err != nil {
		return Program{}, err
	}
	dir := filepath.Dir(origin)
	if rest, ok := strings.CutPrefix(cell.Dir, "~/"); ok {
		dir = filepath.Join(shell.Getenv("HOME"), rest)
	} else if filepath.IsAbs(cell.Dir) {
		dir = cell.Dir
	} else {
		dir = filepath.Join(dir, cell.Dir)
	}
	if _, err := os.Stat(dir); err != nil {
		return Program{}, fmt.Errorf("cell %s runs in a folder that is not there: %w", cell.Name, err)
	}
	return Program{Cell: cell, Path: p.build.Programs[cell.Name], Dir: dir}, nil
}
