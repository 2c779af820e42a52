package rundir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// Dir is a run directory. The zero value is none.
type Dir struct{ path string }

// createAttempts is the maximum number of attempts to find a free name. Names of the same second
// differ in 16 random bits.
const createAttempts = 64

// Create creates a new, empty run directory: a draft that is published at once.
func Create(root, name string, now time.Time) (Dir, error) {
	draft, err := NewDraft(context.Background(), root, name, now)
	if err != nil {
		return Dir{}, err
	}
	if err := draft.Publish(); err != nil {
		return Dir{}, errors.Join(err, draft.Discard())
	}
	return draft.Run, draft.Release()
}

// CheckRoot returns an error if Create won't be able to write in root. It leaves no file there.
func CheckRoot(root string) error {
	abs, err := filepath.Abs(root)
	if err != nil {
		return fmt.Errorf("run root %q: %w", root, err)
	}
	existing := abs
	for {
		_, err := os.Stat(existing)
		if err == nil || existing == filepath.Dir(existing) || !errors.Is(err, fs.ErrNotExist) {
			break
		}
		existing = filepath.Dir(existing)
	}
	probe, err := os.MkdirTemp(existing, hiddenPrefix+"*")
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err // Its path is the probe's.
	}
	if err != nil {
		return rootError(abs, err)
	}
	return errors.Join(checkExec(existing, abs), os.Remove(probe))
}

// noExec is the flag of a file system that is mounted noexec.
const noExec = 0x8

// checkExec refuses a run root in which no program can be started. It accepts a file system that
// doesn't report its flags.
func checkExec(folder, root string) error {
	var stat syscall.Statfs_t
	if err := syscall.Statfs(folder, &stat); err != nil || stat.Flags&noExec == 0 {
		return nil
	}
	return fmt.Errorf("no program can be started in the run root %s: its file system is mounted noexec (choose another folder on the shared file system with --run-root)", root)
}

func rootError(root string, err error) error {
	return fmt.Errorf("cannot write in the run root %s: %w (choose another folder on the shared file system with --run-root)", root, err)
}

// openDir returns the existing run directory at path: a folder that has a manifest.
func openDir(path string) (Dir, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return Dir{}, fmt.Errorf("run directory %q: %w", path, err)
	}
	d := At(abs)
	info, err := os.Stat(abs)
	switch {
	case err != nil:
		return Dir{}, fmt.Errorf("run directory %s: %w", abs, err)
	case !info.IsDir():
		return Dir{}, fmt.Errorf("run directory %s: it is a file, not a folder", abs)
	}
	_, err = os.Stat(d.ManifestPath())
	if errors.Is(err, fs.ErrPermission) {
		return Dir{}, fmt.Errorf("run directory %s: only its owner can read it: %w", abs, err)
	}
	if err != nil {
		return Dir{}, fmt.Errorf("%s is not a run directory: %w", abs, err)
	}
	return d, nil
}

// At returns the run directory at path without checking it: for previews, and for a path that is
// known to be one.
func At(path string) Dir { return Dir{path: filepath.Clean(path)} }

// Path returns the directory's absolute path.
func (d Dir) Path() string { return d.path }

// Name returns the directory's own name, which is also the name of the run.
func (d Dir) Name() string { return filepath.Base(d.path) }

// Notebook returns the path of the notebook as submitted.
func (d Dir) Notebook() string { return d.join("notebook.ipynb") }

// Sources returns the path of the folder of the exported Go module.
func (d Dir) Sources() string { return d.join("sources") }

// Program returns the path of the compiled program of a cell.
func (d Dir) Program(cell string) string { return filepath.Join(d.programs(), cell) }

func (d Dir) programs() string { return d.join("bin") }

// Script returns the path of the batch script for a scheduler.
func (d Dir) Script() string { return d.join("job.sh") }

// ExitStatus returns the path of the file into which the job writes its id and exit code when it
// ends: "<job id> <code>".
func (d Dir) ExitStatus() string { return d.join("exit-status") }

// Logs returns the path of the folder of all logs.
func (d Dir) Logs() string { return d.join("logs") }

// RankLog returns the path of the log of one rank, with all cells in order.
func (d Dir) RankLog(rank int) string { return d.RankLogPattern(strconv.Itoa(rank)) }

// RankLogPattern is RankLog with placeholder (such as SLURM's "%t") instead of the rank.
func (d Dir) RankLogPattern(placeholder string) string {
	return filepath.Join(d.Logs(), "rank-"+placeholder+".log")
}

// SchedulerLog returns the path of the job's own output.
func (d Dir) SchedulerLog() string { return filepath.Join(d.Logs(), "scheduler.log") }

// Metrics returns the path of the file of metrics, one JSON object per line, written by rank 0.
func (d Dir) Metrics() string { return d.join("metrics.jsonl") }

// MetricsTable returns the path of the file of the same metrics as comma-separated values.
func (d Dir) MetricsTable() string { return d.join("metrics.csv") }

// TensorBoard returns the path of the folder of event files. Each training run has its own folder
// in it, which TensorBoard shows as a run.
func (d Dir) TensorBoard() string { return d.join("tensorboard") }

// Curves returns the path of the folder of drawn metrics and sample images.
func (d Dir) Curves() string { return d.join("curves") }

// Traces returns the path of the folder of traces, which show what the ranks did in some updates.
func (d Dir) Traces() string { return d.join("traces") }

// ImagePath returns the path of a sample image in a training's folder of curves. The step has eight
// digits, so that names sort as numbers.
func ImagePath(curves, name string, step int64) string {
	return filepath.Join(curves, "images", name, fmt.Sprintf("step-%08d.png", step))
}

// MLflowRuns returns the path of the folder with a file for each training run that MLflow records,
// which contains the id of its run in MLflow.
func (d Dir) MLflowRuns() string { return d.join("mlflow-runs") }

// Params returns the path of the folder with a file for each training run that has its
// hyper-parameters.
func (d Dir) Params() string { return d.join("hyperparameters") }

// Origins returns the path of the folder with a file for each folder of checkpoints outside of the
// run: the checkpoint of another run from which a training there began.
func (d Dir) Origins() string { return d.join("origins") }

// Checkpoints returns the path of the folder of checkpoints, written by rank 0.
func (d Dir) Checkpoints() string { return d.join("checkpoints") }

// Plugins returns the path of the folder of the XLA plugin.
func (d Dir) Plugins() string { return d.join("plugins") }

// OneDNN returns the path of the run's own copy of oneDNN, or of a link to the library.
func (d Dir) OneDNN() string { return filepath.Join(d.Plugins(), "onednn.so") }

// ManifestPath returns the path of the file with the run's Manifest.
func (d Dir) ManifestPath() string { return d.join("manifest.json") }

func (d Dir) join(name string) string { return filepath.Join(d.path, name) }

// Executed returns the path of the notebook with the output of its cells, written while the job
// runs.
func (d Dir) Executed() string { return d.join("executed.ipynb") }

// Submit returns the path of the run's own submit command, which runs the job and its ranks.
func (d Dir) Submit() string { return d.join("submit") }

// Result is the file in which the running program leaves the value of its last expression, for the
// executed notebook.
func (d Dir) Result() string { return d.join("shown.json") }

// Unrecorded is a mark that the executed notebook lacks some output.
func (d Dir) Unrecorded() string { return d.join("unrecorded") }

// Store returns the path of the folder in a run root for the big files that a user's runs share, if
// the sources of these files are on another file system. It has each file once, named by its
// content, and runs link to it.
func Store(root string, uid int) string { return filepath.Join(root, fmt.Sprintf(".store-%d", uid)) }

// Root returns the path of the folder that contains the run directory and others.
func (d Dir) Root() string { return filepath.Dir(d.path) }
