package stage

import (
	"context"
	"slices"

	"gonbatch/internal/rundir"
	"gonbatch/submit"
	"gonbatch/submit/export"
	"gonbatch/submit/store"
)

// Manifest describes the run that is staged in spec.RunDir.
func (p Prepared) Manifest(ctx context.Context, shell submit.Shell, spec submit.JobSpec) (rundir.Manifest, error) {
	notebook, err := p.Notebook.origin()
	if err != nil {
		return rundir.Manifest{}, err
	}
	hash, err := store.HashFile(spec.RunDir.Notebook())
	if err != nil {
		return rundir.Manifest{}, err
	}
	cells, err := p.hashedCells(spec)
	if err != nil {
		return rundir.Manifest{}, err
	}
	return rundir.Manifest{
		Name:          spec.RunDir.Name(),
		Notebook:      rundir.File{Path: notebook, SHA256: hash},
		Git:           gitState(ctx, shell.Runner, notebook),
		SourcesSHA256: hashSources(p.Module),
		Cells:         cells,
		CommandLine:   shell.CommandLine,
		Versions:      versionsOf(p.Module, p.build.GoVersion),
		Created:       shell.Now(),
		ReusedFrom:    p.Reuse.run(),
	}, nil
}

// hashedCells are the cells with all their arguments, and with the hashes of the bytes that will
// run.
func (p Prepared) hashedCells(spec submit.JobSpec) ([]rundir.Cell, error) {
	known, err := store.UserHashes()
	if err != nil {
		return nil, err
	}
	list := slices.Clone(spec.Cells)
	for i, s := range list {
		list[i].Args = spec.CellArgs(s)
		if s.Shell {
			list[i].SHA256 = store.HashBytes(p.Module.Files[s.Script()])
		} else if list[i].SHA256, err = known.Of(p.build.Programs[s.Name]); err != nil {
			return nil, err
		}
	}
	return list, known.Save()
}

// hashSources is one hash over all files of the module: their names and contents, in order.
func hashSources(m *export.Module) string {
	var all []byte
	for _, name := range m.FileNames() {
		all = append(all, store.HashBytes([]byte(name))...)
		all = append(all, store.HashBytes(m.Files[name])...)
	}
	return store.HashBytes(all)
}
