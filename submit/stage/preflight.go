package stage

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"gonbatch/internal/rundir"
	"gonbatch/submit/scratch"
)

// preflightNotebook calls distributed.Check.
//
//go:embed preflight.ipynb
var preflightNotebook []byte

// Preflight writes the notebook of a preflight into a folder that the nodes can see too; each user
// has one, because several may share the run root. For a dry run, which writes nothing there, it
// writes the notebook into a temporary folder that clean removes. workDir is the job's folder in
// both cases.
func Preflight(root string, dryRun bool) (notebook, workDir string, clean func() error, err error) {
	if workDir, err = filepath.Abs(filepath.Join(root, fmt.Sprintf(".preflight-%d", os.Geteuid()))); err != nil {
		return "", "", nil, err
	}
	folder, clean := workDir, func() error { return nil }
	if !dryRun {
		err = os.MkdirAll(folder, 0o700)
	} else if folder, err = scratch.Make(scratch.Preflight); err == nil {
		clean = func() error { return os.RemoveAll(folder) }
	}
	if err != nil {
		return "", "", nil, fmt.Errorf("preflight: %w (choose another folder on the shared file system with --run-root)", err)
	}
	notebook = filepath.Join(folder, "preflight.ipynb")
	if err := rundir.WriteFileAtomic(notebook, preflightNotebook, 0o600); err != nil {
		return "", "", nil, errors.Join(err, clean())
	}
	return notebook, workDir, clean, nil
}
