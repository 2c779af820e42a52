package stage

import (
	"debug/buildinfo"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

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

// Preflight writes the notebook of a preflight into a folder that the nodes can see too; each user
// has one, because several may share the run root. If there is a kit, the notebook runs it where it
// is. For a dry run, which writes nothing there, it writes the notebook into a temporary folder
// that clean removes. workDir is the job's folder in both cases.
func Preflight(root string, kit GPUKit, dryRun bool) (notebook, workDir string, clean func() error, err error) {
	text, err := kit.notebook()
	if err != nil {
		return "", "", nil, err
	}
	if workDir, err = filepath.Abs(filepath.Join(root, fmt.Sprintf(".preflight-%d", os.Geteuid()))); err != nil {
		return "", "", nil, err
	}
	folder, clean := workDir, func() error { return nil }
	if !dryRun {
		err = errors.Join(os.MkdirAll(folder, 0o700), rundir.CheckPrivate(folder))
	} else if folder, err = scratch.Make(scratch.Preflight); err == nil {
		clean = func() error { return os.RemoveAll(folder) }
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

// runKit runs the kit on a node. The results of each job are in its run directory.
const runKit = `![ -x %[1]s ] || { echo "this node doesn't see the GPU kit, "%[1]s": give --gpu-check=FOLDER on a file system that it does see" >&2; exit 1; }; %[1]s -out "$%[2]s/gpu-check" %[3]s`

// notebook returns the preflight's notebook, with a cell that runs the kit if there is one.
func (k GPUKit) notebook() ([]byte, error) {
	if k.Folder == "" {
		return preflightNotebook, nil
	}
	program, err := filepath.Abs(filepath.Join(k.Folder, "run.sh"))
	if err == nil {
		_, err = os.Stat(program)
	}
	if err != nil {
		return nil, submit.Usagef("--gpu-check=%s: there is no GPU kit (%v): make one in a checkout of gonbatch, by scripts/gpu-kit.sh, and give its folder", k.Folder, err)
	}
	if err := k.sameVersion(); err != nil {
		return nil, err
	}
	nb, err := nbformat.Parse("preflight.ipynb", preflightNotebook)
	if err != nil {
		return nil, err
	}
	line := fmt.Sprintf(runKit, shellescape.Quote(program), rundir.EnvDir, shellescape.QuoteCommand(k.Args))
	nb.Cells = append(nb.Cells, &nbformat.Cell{Type: nbformat.Code, ID: "gpu-check", Source: strings.TrimSpace(line)})
	return nb.Marshal()
}

// sameVersion refuses a kit that was made with other versions of the libraries: it would check
// something else.
func (k GPUKit) sameVersion() error {
	theirs, err := buildinfo.ReadFile(filepath.Join(k.Folder, "gpu-check"))
	ours, known := debug.ReadBuildInfo()
	if err != nil || !known {
		return nil // It isn't Go's, such as in a test.
	}
	version := map[string]string{}
	for _, m := range ours.Deps {
		version[m.Path] = m.Version
	}
	for _, m := range theirs.Deps {
		if mine := version[m.Path]; mine != "" && mine != m.Version {
			return submit.Usagef("--gpu-check=%s: the kit has %s %s, and submit has %s: make the kit again, by scripts/gpu-kit.sh", k.Folder, m.Path, m.Version, mine)
		}
	}
	return nil
}
