package stage

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	"gonbatch/internal/rundir"
	"gonbatch/submit"
	"gonbatch/submit/export"
	"gonbatch/submit/export/input"
	"gonbatch/submit/store"
)

// Manifest returns the manifest of the run of spec, which is staged in dir.
func (p Prepared) Manifest(ctx context.Context, shell submit.Shell, dir rundir.Dir, spec submit.JobSpec) (rundir.Manifest, error) {
	notebook, err := p.Notebook.origin()
	if err != nil {
		return rundir.Manifest{}, err
	}
	hash, err := store.HashFile(dir.Notebook())
	if err != nil {
		return rundir.Manifest{}, err
	}
	return rundir.Manifest{
		Name:          spec.RunDir.Name(),
		Notebook:      rundir.File{Path: notebook, SHA256: hash},
		Part:          p.Notebook.SessionKept != "",
		Git:           gitState(ctx, shell.Runner, notebook),
		SourcesSHA256: hashSources(p.Module),
		Cells:         p.hashedCells(spec),
		CommandLine:   shell.CommandLine,
		Parameters:    input.ParameterValues(p.Module.Parameters, p.Notebook.Parameters),
		Flags:         input.FlagValues(p.Module.Flags, spec.Args),
		Versions:      versionsOf(p.Module, p.build.GoVersion),
		Created:       shell.Now(),
		ReusedFrom:    p.Reuse.run(),
	}, nil
}

// hashedCells returns the cells with all their arguments, and with the hashes of their programs and
// scripts.
func (p Prepared) hashedCells(spec submit.JobSpec) []rundir.Cell {
	list := spec.WithArgs(spec.Cells)
	for i, s := range list {
		if list[i].SHA256 = p.build.Sums[s.Name]; s.Shell {
			list[i].SHA256 = store.HashBytes(p.Module.Files[s.Script()])
		}
	}
	return list
}

// hashSources returns one hash of all files of the module: their names and contents, in order.
func hashSources(m *export.Module) string {
	var all []byte
	for _, name := range m.FileNames() {
		all = append(all, store.HashBytes([]byte(name))...)
		all = append(all, store.HashBytes(m.Files[name])...)
	}
	return store.HashBytes(all)
}

// gitTimeout bounds the commands of git: a big repository must not delay a submission.
const gitTimeout = 5 * time.Second

// gitState returns the state of the notebook's repository; nil if there is no repository, git or
// commit. The state is also dirty if the notebook itself is not committed.
func gitState(ctx context.Context, runner submit.Runner, notebook string) *rundir.Git {
	dir, base := filepath.Split(notebook)
	ctx, cancel := context.WithTimeout(ctx, gitTimeout)
	defer cancel()
	commit, err := runner.Run(ctx, "git", "-C", dir, "rev-parse", "--verify", "HEAD")
	if err != nil {
		return nil
	}
	tracked, err := runner.Run(ctx, "git", "-C", dir, "status", "--porcelain", "--untracked-files=no")
	own, ownErr := runner.Run(ctx, "git", "-C", dir, "--literal-pathspecs", "status", "--porcelain", "--", base)
	dirty := err != nil || ownErr != nil || len(tracked) > 0 || len(own) > 0
	return &rundir.Git{Commit: strings.TrimSpace(string(commit)), Dirty: dirty}
}
