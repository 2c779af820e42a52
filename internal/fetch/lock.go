package fetch

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"gonbatch/internal/solo"
)

const lockPoll = 50 * time.Millisecond

// Lock takes the lock of path for this process. It waits, until ctx ends, while another process or
// goroutine holds it. It creates the folder. The lock is a hidden file beside path. The file stays,
// because removing it would race with the next process; the kernel releases the lock of a process
// that dies. Until it is unlocked, other ranks of a job wait for this one (package solo).
func Lock(ctx context.Context, path string, progress io.Writer) (unlock func(), err error) {
	end := solo.Begin("gets " + filepath.Base(path))
	defer func() {
		if err != nil {
			end()
		}
	}()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("fetch %s: create its folder: %w", path, err)
	}
	// NFS needs a lock file that is open for writing; a group may share the folder.
	l := flock.New(hidden(path, ".lock"), flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o666))
	ok, err := l.TryLock()
	if err == nil && !ok {
		if progress != nil {
			fmt.Fprintf(progress, "%s: waiting for the process that is fetching it\n", filepath.Base(path))
		}
		_, err = l.TryLockContext(ctx, lockPoll)
	}
	if err != nil {
		return nil, fmt.Errorf("fetch %s: lock %s: %w", path, l.Path(), err)
	}
	return func() {
		_ = l.Unlock()
		end()
	}, nil
}

// Once calls get unless have reports that its result is there. It holds the lock of path meanwhile,
// so that of several goroutines and processes one calls get, and the others wait.
func Once(ctx context.Context, path string, progress io.Writer, have func() bool, get func() error) error {
	if have() {
		return nil
	}
	unlock, err := Lock(ctx, path, progress)
	if err != nil {
		return err
	}
	defer unlock()
	if have() { // Another process was faster.
		return nil
	}
	return get()
}

// hidden returns the name of a hidden file beside path.
func hidden(path, suffix string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+suffix)
}
