package stage

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"gonbatch/internal/nbformat"
	"gonbatch/internal/rundir"
	"gonbatch/internal/userdir"
	"gonbatch/submit"
	"gonbatch/submit/executed"
	"gonbatch/submit/store"
)

// Again is a run whose programs run again, as another run.
type Again struct {
	// Dir is the run, Manifest its manifest, and Parameters are the values that it was given.
	Dir        rundir.Dir
	Manifest   rundir.Manifest
	Parameters map[string]string
}

// Stage creates the draft of a run with the programs, the sources and the notebook of the earlier
// one, and none of its results. If anything fails, it leaves nothing behind.
func (a Again) Stage(ctx context.Context, shell submit.Shell, root, name string) (*rundir.Draft, error) {
	cache, err := userdir.Cache(shell.Getenv)
	if err != nil {
		return nil, err
	}
	p := Prepared{cache: cache}
	return p.draft(ctx, shell, root, name, func(d *rundir.Draft) error {
		if err := a.fill(d.Dir); err != nil {
			return err
		}
		if err := p.stageSubmit(shell, d.Dir); err != nil {
			return err
		}
		nb, err := nbformat.Read(d.Dir.Notebook())
		if err != nil {
			return err
		}
		plan := planOf(a.Manifest.Cells, nb)
		plan.Run, plan.Input, plan.Parameters = d.Run, a.Manifest.Notebook.Path, a.Parameters
		return errors.Join(executed.Prepare(d.Dir, nb, plan), d.Dir.Protect())
	})
}

// fill takes the files of the earlier run.
func (a Again) fill(to rundir.Dir) error {
	if err := store.CopyFile(a.Dir.Notebook(), to.Notebook()); err != nil {
		return err
	}
	if err := os.CopyFS(to.Sources(), os.DirFS(a.Dir.Sources())); err != nil {
		return err
	}
	for from, to := range map[string]string{filepath.Dir(a.Dir.Program("any")): filepath.Dir(to.Program("any")), a.Dir.Plugins(): to.Plugins(), a.Dir.KeptAtFirst(): to.KeptAtFirst()} {
		if err := store.LinkFolder(from, to); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	link, err := os.Readlink(a.Dir.OneDNN())
	if err != nil {
		return nil //nolint:nilerr // It is a file, which is linked already, or there is none.
	}
	return os.Symlink(link, to.OneDNN())
}
