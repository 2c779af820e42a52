package rundir

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"gonbatch/internal/bounded"
	"gonbatch/internal/machine"
)

// other is a user who is not root.
const other = 65534

func needsRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		machine.Lacks(t, "only root can be several users: run the tests as root")
	}
}

// giveAway gives a run, or a link, to the other user.
func giveAway(t *testing.T, path string) {
	t.Helper()
	err := filepath.WalkDir(path, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, other, other))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestOthersRuns: a run of another user has nothing but its path, whatever it claims to be, and
// nobody but its owner changes it: even root could be led to its own files by links.
func TestOthersRuns(t *testing.T) {
	needsRoot(t)
	root := t.TempDir()
	mine := newRun(t, root, "x", testTime, "7")
	theirs := newRun(t, root, "x", testTime.Add(time.Hour), "7")
	giveAway(t, theirs.Path())
	named := filepath.Join(root, "7")
	moved := newRun(t, t.TempDir(), "moved", testTime.Add(-time.Hour), "8")
	own := filepath.Join(root, moved.Name())
	if err := errors.Join(os.Symlink(mine.Path(), named), os.Symlink(moved.Path(), own)); err != nil {
		t.Fatal(err)
	}
	giveAway(t, named)
	runs, others, err := ListAll(root)
	if err != nil || !slices.Equal(runs, []Dir{At(own), mine}) || !slices.Equal(others, []Dir{At(named), theirs}) {
		t.Errorf("%v, %v, %v", runs, others, err)
	}
	for _, want := range []string{"7", mine.Name()} {
		if d, err := Find(root, want); err != nil || d != mine {
			t.Errorf("%s: %v, %v", want, d, err)
		}
	}
	if _, err := Find(root, theirs.Name()); !errors.Is(err, fs.ErrPermission) || !strings.HasSuffix(err.Error(), "to look at it, give its directory: "+theirs.Path()) {
		t.Error(err)
	}
	if d, err := Find(root, theirs.Path()); err != nil || d != theirs {
		t.Errorf("%v, %v", d, err)
	}
	err = UpdateManifest(t.Context(), theirs, nil, func(m *Manifest) { m.State = "changed" })
	if m, readErr := ReadManifest(theirs); !errors.Is(err, fs.ErrPermission) || readErr != nil || m.State != "" {
		t.Errorf("%v, %+v, %v", err, m, readErr)
	}
}

// TestSharedRoot: a warning names a run root in which others can replace runs, and one that submit
// has created is none.
func TestSharedRoot(t *testing.T) {
	needsRoot(t)
	defer syscall.Umask(syscall.Umask(0))
	created := filepath.Join(t.TempDir(), "runs")
	newRun(t, created, "x", testTime, "")
	if err := CheckShared(created); err != nil {
		t.Error(err)
	}
	for _, tt := range []struct {
		mode  fs.FileMode
		group int
		warns bool
	}{
		{0o755, other, false}, {0o777, other, true}, {0o775, other, true}, {0o775, 0, false}, {fs.ModeSticky | 0o777, other, false}, {fs.ModeSetgid | 0o770, other, true},
	} {
		folder := t.TempDir()
		if err := errors.Join(os.Chown(folder, 0, tt.group), os.Chmod(folder, tt.mode)); err != nil {
			t.Fatal(err)
		}
		if err := CheckShared(folder); (err != nil) != tt.warns {
			t.Errorf("%v of group %d: %v", tt.mode, tt.group, err)
		}
	}
}

// lockAs takes and releases a run's lock as the other user.
func lockAs(t *testing.T, d Dir) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	folder, err := os.MkdirTemp("/tmp", "gonbatch-owner-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	program := filepath.Join(folder, "test")
	text, err := os.ReadFile(os.Args[0])
	if err := errors.Join(err, os.WriteFile(program, text, 0o755), os.Chmod(folder, 0o755)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, program)
	cmd.Dir, cmd.Env = "/", append(os.Environ(), "GONBATCH_TEST_TAKE="+d.Path())
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: other, Gid: other}}
	out, err := bounded.CombinedOutput(cmd)
	said, _, _ := strings.Cut(string(out), "\n\n")
	return said, err
}

// TestLockThatCannotBeBroken: if the lock of a dead process can't be removed, that is an error, not
// a wait without end.
func TestLockThatCannotBeBroken(t *testing.T) {
	needsRoot(t)
	root, err := os.MkdirTemp("/tmp", "gonbatch-owner-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	d := newRun(t, root, "x", testTime, "7")
	dead, err := ThisProcess()
	if err != nil {
		t.Fatal(err)
	}
	dead.Start = "1" // Another process had the number.
	text, err := json.Marshal(holder{dead, "token"})
	if err != nil {
		t.Fatal(err)
	}
	// In a sticky folder only the owner of a file removes it.
	if err := errors.Join(os.Chmod(d.Path(), os.ModeSticky|0o777), os.WriteFile(d.RunLock(), text, 0o644)); err != nil {
		t.Fatal(err)
	}
	out, err := lockAs(t, d)
	if err == nil || !strings.Contains(out, "can't be removed: ") || !strings.Contains(out, "ask its owner") {
		t.Errorf("%v\n%s", err, out)
	}
}
