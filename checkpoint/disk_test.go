package checkpoint_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"golang.org/x/sys/unix"

	"gonbatch/checkpoint"
	"gonbatch/tests/tmpfs"
)

// disk mounts a new file system, which needs root.
func disk(t *testing.T, options string) string {
	t.Helper()
	path := t.TempDir()
	tmpfs.Mount(t, path, options)
	return filepath.Join(path, "checkpoints")
}

// megabytes returns a store with one tensor.
func megabytes(t *testing.T, n int) *model.Store {
	t.Helper()
	store := model.NewStore()
	_, err := store.CreateVariable("/weights", tensors.FromShape(shapes.Make(dtypes.Uint8, n<<20)))
	ok(t, err)
	return store
}

func TestDiskFull(t *testing.T) {
	dir := openAt(t, disk(t, "size=5m"), checkpoint.Options{})
	s := take(t, megabytes(t, 2))
	s.Step = 1
	ok(t, dir.Save(s))
	large := take(t, megabytes(t, 4))
	large.Step = 2
	err := dir.Save(large)
	contains(t, err, "step 2", dir.Path(), "model.safetensors", "no space left", "make room")
	if !errors.Is(err, unix.ENOSPC) {
		t.Errorf("%v isn't ENOSPC", err)
	}
	steps(t, dir, 1)
	sameTensors(t, s, latest(t, dir))
	s.Step = 2 // There is still room for this one.
	ok(t, dir.Save(s))
	steps(t, dir, 2, 1)
}

func TestReadOnlyDisk(t *testing.T) {
	path := disk(t, "size=5m")
	dir := openAt(t, path, checkpoint.Options{})
	s := take(t, megabytes(t, 1))
	s.Step = 1
	ok(t, dir.Save(s))
	ok(t, unix.Mount("", filepath.Dir(path), "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	s.Step = 2
	contains(t, dir.Save(s), path, "read-only file system")
	if got := latest(t, openAt(t, path, checkpoint.Options{})); got.Step != 1 {
		t.Errorf("step %d is the newest", got.Step)
	}
	_, err := checkpoint.Open(path+"/new", checkpoint.Options{})
	contains(t, err, path+"/new", "read-only file system")
}

func TestReadOnlyFolder(t *testing.T) {
	dir := open(t, checkpoint.Options{})
	ok(t, os.Chmod(dir.Path(), 0o555))
	t.Cleanup(func() { _ = os.Chmod(dir.Path(), 0o755) })
	s := take(t, megabytes(t, 1))
	saved := make(chan error)
	go func() {
		if os.Geteuid() == 0 {
			runtime.LockOSThread() // For good: the thread ends with this goroutine.
			if err := unix.Setfsuid(65534); err != nil {
				t.Error(err)
			}
		}
		saved <- dir.Save(s)
	}()
	contains(t, <-saved, dir.Path(), "permission denied")
	empty(t, dir.Path())
}
