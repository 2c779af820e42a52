package rundir

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"gonbatch/internal/bounded"
)

// The users in the tests, who are not root: the run's owner, and a member of the owner's group.
var (
	owner     = syscall.Credential{Uid: 65534, Gid: 65534}
	colleague = syscall.Credential{Uid: 65533, Gid: 65533, Groups: []uint32{65534}}
)

// use uses a run like a command that looks at it or ends it.
func use(d Dir, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	lock, err := AcquireLock(ctx, d.RunLock(), nil)
	if err != nil {
		return err
	}
	return errors.Join(lock.CoverChildren(ctx), UpdateManifest(d, func(m *Manifest) { m.State += "x" }), d.useExecuted(), lock.Release())
}

func (d Dir) useExecuted() error {
	text, err := os.ReadFile(d.Executed())
	return errors.Join(err, WriteFileAtomic(d.Executed(), append(text, 'x'), 0o600))
}

// useAs runs use as another user, and must succeed.
func useAs(t *testing.T, d Dir, who syscall.Credential) {
	t.Helper()
	if out, err := tryAs(t, d, who, time.Minute); err != nil {
		t.Errorf("user %d cannot use the run: %v\n%s", who.Uid, err, out)
	}
}

// tryAs runs use as another user. If the program does not end, it is killed eventually.
func tryAs(t *testing.T, d Dir, who syscall.Credential, patience time.Duration) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	program := filepath.Join(publicFolder(t), "test")
	text, err := os.ReadFile(os.Args[0])
	if err == nil {
		err = os.WriteFile(program, text, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, program)
	cmd.Dir, cmd.Env = "/", append(os.Environ(), "GONBATCH_TEST_USE="+d.Path(), "GONBATCH_TEST_PATIENCE="+patience.String())
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &who}
	out, err := bounded.CombinedOutput(cmd)
	said, _, _ := strings.Cut(string(out), "\n\n")
	return said, err
}

// publicFolder returns a folder that every user may enter.
func publicFolder(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("/tmp", "gonbatch-owner-")
	if err == nil {
		err = os.Chmod(folder, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	return folder
}

// ownedRun returns a run of the owner.
func ownedRun(t *testing.T) Dir {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can be several users")
	}
	d := newRun(t, publicFolder(t), "x", time.Now(), "7")
	if err := os.WriteFile(d.Executed(), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(d.Path(), func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Chown(path, int(owner.Uid), int(owner.Gid)))
	})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestRootLeavesTheOwner: after root has looked at a run, or ended it, everything in it still
// belongs to its owner, who can continue it.
func TestRootLeavesTheOwner(t *testing.T) {
	d := ownedRun(t)
	if err := use(d, time.Minute); err != nil {
		t.Fatal(err)
	}
	lock, err := AcquireLock(t.Context(), d.RunLock(), nil) // A killed command leaves its lock.
	if err != nil {
		t.Fatal(err)
	}
	if _, err := AddStart(d, "job 7 now"); err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(d.Path(), func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if stat, ok := statOf(entry.Info()); !ok || stat.Uid != owner.Uid || stat.Gid != owner.Gid {
			t.Errorf("%s belongs to %+v", path, stat)
		}
		return nil
	})
	if err := errors.Join(err, lock.Release()); err != nil {
		t.Fatal(err)
	}
	useAs(t, d, owner)
}

// TestRootGivesNothingAway: a link created by a user does not make another user's file theirs.
func TestRootGivesNothingAway(t *testing.T) {
	d := ownedRun(t)
	secret := filepath.Join(publicFolder(t), "secret")
	if err := errors.Join(os.WriteFile(secret, nil, 0o600), os.Symlink(secret, d.Starts())); err != nil {
		t.Fatal(err)
	}
	if _, err := AddStart(d, "job 7 now"); err != nil {
		t.Fatal(err)
	}
	if stat, ok := statOf(os.Stat(secret)); !ok || stat.Uid != 0 {
		t.Errorf("root's file belongs to %+v", stat)
	}
}

// TestColleagueLeavesTheRights: a user who may write in another user's run replaces files there.
// The owner can still read and write them, and does not need the colleague's lock file.
func TestColleagueLeavesTheRights(t *testing.T) {
	d := ownedRun(t)
	if err := errors.Join(os.Chmod(d.Path(), 0o770), os.Chmod(d.ManifestPath(), 0o660), os.Chmod(d.Executed(), 0o660)); err != nil {
		t.Fatal(err)
	}
	useAs(t, d, colleague)
	useAs(t, d, owner)
	if m, err := ReadManifest(d); err != nil || !strings.HasSuffix(m.State, "xx") {
		t.Errorf("%+v, %v", m, err)
	}
}

// TestUnreadableLock: a lock that another user holds is waited for like any other, though its
// holder can't be named.
func TestUnreadableLock(t *testing.T) {
	d := ownedRun(t)
	if err := os.WriteFile(d.RunLock(), []byte("{}"), 0o600); err != nil { // Root's.
		t.Fatal(err)
	}
	if out, err := tryAs(t, d, owner, 100*time.Millisecond); err == nil || !strings.Contains(out, context.DeadlineExceeded.Error()) {
		t.Errorf("%v\n%s", err, out)
	}
}
