package stage

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"al.essio.dev/pkg/shellescape"

	"gonbatch/internal/nbformat"
	"gonbatch/internal/rundir"
	"gonbatch/submit"
	"gonbatch/submit/scratch"
)

// preflightNotebook calls distributed.Check.
//
//go:embed preflight.ipynb
var preflightNotebook []byte

// GPUKit is a folder that scripts/gpu-kit.sh has made, and the flags of its run.sh. An empty folder
// is none.
type GPUKit struct {
	Folder string
	Args   []string
}

// kitFolder is the kit's folder in that of the job.
const kitFolder = "gpu-kit"

// Preflight writes the notebook of a preflight into a folder that the nodes can see too; each user
// has one, because several may share the run root. If there is a kit, it is copied there, and the
// notebook runs it. For a dry run, which writes nothing there, it writes the notebook into a
// temporary folder that clean removes. workDir is the job's folder in both cases.
func Preflight(root string, kit GPUKit, dryRun bool) (notebook, workDir string, clean func() error, err error) {
	text, err := kit.notebook()
	if err != nil {
		return "", "", nil, err
	}
	if workDir, err = filepath.Abs(filepath.Join(root, fmt.Sprintf(".preflight-%d", os.Geteuid()))); err != nil {
		return "", "", nil, err
	}
	folder, clean := workDir, func() error { return nil }
	if dryRun {
		if folder, err = scratch.Make(scratch.Preflight); err == nil {
			clean = func() error { return os.RemoveAll(folder) }
		}
	} else if err = os.MkdirAll(folder, 0o700); err == nil {
		err = kit.copyTo(filepath.Join(folder, kitFolder))
	}
	if err != nil {
		return "", "", nil, fmt.Errorf("preflight: %w (choose another folder on the shared file system with --run-root)", err)
	}
	notebook = filepath.Join(folder, "preflight.ipynb")
	if err := rundir.WriteFileAtomic(notebook, text, 0o600); err != nil {
		return "", "", nil, errors.Join(err, clean())
	}
	return notebook, workDir, clean, nil
}

// notebook returns the preflight's notebook, with a cell that runs the kit if there is one.
func (k GPUKit) notebook() ([]byte, error) {
	if k.Folder == "" {
		return preflightNotebook, nil
	}
	if _, err := os.Stat(filepath.Join(k.Folder, "run.sh")); err != nil {
		return nil, submit.Usagef("--gpu-check=%s: there is no GPU kit (%v): make one in a checkout of gonbatch, by scripts/gpu-kit.sh, and give its folder", k.Folder, err)
	}
	nb, err := nbformat.Parse("preflight.ipynb", preflightNotebook)
	if err != nil {
		return nil, err
	}
	command := append([]string{filepath.Join(kitFolder, "run.sh")}, k.Args...)
	nb.Cells = append(nb.Cells, &nbformat.Cell{Type: nbformat.Code, ID: "gpu-check", Source: "!" + shellescape.QuoteCommand(command)})
	return nb.Marshal()
}

// copyTo copies the kit, in place of an earlier one.
func (k GPUKit) copyTo(folder string) error {
	if k.Folder == "" {
		return nil
	}
	return errors.Join(os.RemoveAll(folder), os.CopyFS(folder, os.DirFS(k.Folder)))
}
