package rundir

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// childrenOf returns the path of the file that the children of a lock's holder keep locked.
func childrenOf(lock string) string {
	return filepath.Join(filepath.Dir(lock), "."+filepath.Base(lock)+".children")
}

// IsChanging reports whether a command on this machine is starting or ending the run, or a command
// that it has left running.
func (d Dir) IsChanging() bool {
	f, err := Open(childrenOf(d.RunLock()))
	if err != nil {
		return false
	}
	defer f.Close() //nolint:errcheck // only locked
	return errors.Is(syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}

// CoverChildren keeps the lock, if its holder is killed, until the commands that the holder has
// started since have ended: sbatch may still be running, and queue a job. It waits for the commands
// of an earlier holder. It works on one machine, and only if the file system has its own locks;
// otherwise it does nothing.
func (l *Lock) CoverChildren(ctx context.Context) error {
	path := childrenOf(l.path)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("lock %s: %w", l.path, err)
	}
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			break
		}
		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("lock %s, whose last holder has left a command that still runs: %w", l.path, context.Cause(ctx)), f.Close())
		case <-time.After(lockPoll):
		}
	}
	// Children keep the file open, and so locked, unless it is closed when they begin.
	if _, _, errno := syscall.Syscall(syscall.SYS_FCNTL, f.Fd(), syscall.F_SETFD, 0); errno != 0 {
		return errors.Join(fmt.Errorf("lock %s: %w", l.path, errno), f.Close())
	}
	l.children = f
	return nil
}
