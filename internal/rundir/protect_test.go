package rundir

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gonbatch/tests/tmpfs"
)

// TestProtect: only its owner can access a run directory, and files shared with a cache keep their
// permissions.
func TestProtect(t *testing.T) {
	root := t.TempDir()
	d, err := Create(root, "x", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	cached := filepath.Join(root, "cached")
	for path, mode := range map[string]os.FileMode{filepath.Join(d.Sources(), "main.go"): 0o644, d.Program("run.sh"): 0o755, d.Notebook(): 0o664, cached: 0o755} {
		if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Chmod(path, mode)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Link(cached, d.Program("cached")), os.Chmod(d.Sources(), 0o755), d.Protect()); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]os.FileMode{
		d.Path(): 0o700, d.Sources(): 0o700, d.Logs(): 0o700, d.Checkpoints(): 0o700,
		filepath.Join(d.Sources(), "main.go"): 0o600, d.Program("run.sh"): 0o700, d.Notebook(): 0o600, cached: 0o755,
	} {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v; want %o", path, info.Mode(), err, want)
		}
	}
}

// TestNoExec: a run root where no program can start is detected before anything is created there.
func TestNoExec(t *testing.T) {
	root := filepath.Join(t.TempDir(), "noexec")
	tmpfs.Mount(t, root, "size=1m")
	if err := CheckRoot(filepath.Join(root, "runs")); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("", root, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_NOEXEC, ""); err != nil {
		t.Fatal(err)
	}
	err := CheckRoot(filepath.Join(root, "runs"))
	if err == nil || !strings.Contains(err.Error(), "its file system is mounted noexec (choose another folder on the shared file system with --run-root)") {
		t.Errorf("CheckRoot: %v", err)
	}
	if left, err := os.ReadDir(root); len(left) > 0 || err != nil {
		t.Errorf("it left %v, %v", left, err)
	}
}

// TestProgress: a training run's progress can be read whatever happens to it, and two deaths at one
// place are detected.
func TestProgress(t *testing.T) {
	d, err := Create(t.TempDir(), "x", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if got := ReadProgress(d); got != 0 {
		t.Errorf("before the first report: %d", got)
	}
	var none *ProgressFile
	none.Report(3)
	p, err := OpenProgress(d)
	if err != nil {
		t.Fatal(err)
	}
	for _, update := range []int64{1, 999, 7} {
		p.Report(update)
		if got := ReadProgress(d); got != update {
			t.Errorf("ReadProgress = %d, want %d", got, update)
		}
	}
	if err := errors.Join(p.Close(), none.Close(), ClearProgress(d), ClearProgress(d)); err != nil || ReadProgress(d) != 0 {
		t.Errorf("%v, progress %d", err, ReadProgress(d))
	}
	deaths := []Death{{1, "train", 60}, {2, "train", 60}, {3, "eval", 60}, {5, "eval", 60}, {6, "eval", 59}, {7, "eval", 60}, {8, "eval", 62}}
	repeats := []bool{false, true, false, false, true, true, false}
	for i, death := range deaths {
		if err := AddDeath(d, death); err != nil {
			t.Fatal(err)
		}
		before, last, err := LastDeaths(d)
		if err != nil || last != death || last.Repeats(before) != repeats[i] {
			t.Errorf("after %v: %v, %v, %v", death, before, last, err)
		}
	}
}
