package rundir

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Lock is a file that one process at a time holds, on any of the machines that share the file
// system. It does not use the file system's own locks, which some clusters lack. The lock of a dead
// process is taken over: at once on the same machine, elsewhere when its holder has shown no sign
// of life for lockSilence.
type Lock struct {
	path, token string
	children    *os.File
	stop        chan struct{}
	stopped     sync.WaitGroup
}

const (
	// lockPoll is the time between two attempts to get a lock.
	lockPoll = 50 * time.Millisecond
	// lockQuiet is a wait that is not worth a message.
	lockQuiet = 4 * lockPoll
	// lockBeat is how often a holder shows a sign of life.
	lockBeat = 5 * time.Second
	// lockSilence is far more than a beat: file systems show changes late.
	lockSilence = 90 * time.Second
)

// holder is the content of a lock's file. The token makes it unique.
type holder struct {
	Process
	Token string `json:"token"`
}

// RunLock returns the path of the lock that a command holds while it starts or ends the run.
func (d Dir) RunLock() string { return d.join("lock") }

// StartLock returns the path of the lock that a job holds from its look for other jobs of the run
// until it has recorded its start.
func (d Dir) StartLock() string { return d.join(".start.lock") }

// manifestLock returns the path of the lock for one change of the manifest.
func (d Dir) manifestLock() string { return d.join(".manifest.lock") }

// AcquireLock waits until it holds the lock at path, or ctx ends. If it waits for longer than
// lockQuiet, it calls waiting once, with the process that holds the lock, as far as it is known.
func AcquireLock(ctx context.Context, path string, waiting func(Process)) (*Lock, error) {
	other := lockWatch{path: path, waiting: waiting, began: time.Now()}
	for {
		if l, err := createLock(path); l != nil || err != nil {
			return l, err
		}
		if err := other.wait(ctx); err != nil {
			return nil, err
		}
	}
}

// TryLock is AcquireLock without the wait: it returns nil if another process holds the lock. It
// takes over the lock of a dead process only if that was on the same machine.
func TryLock(path string) (*Lock, error) {
	other := lockWatch{path: path}
	if now, there, err := other.look(); err != nil || there && !now.Gone() {
		return nil, err
	}
	return createLock(path)
}

// createLock creates the file of a lock, or returns nil if it exists.
func createLock(path string) (*Lock, error) {
	self, err := ThisProcess()
	if err != nil {
		return nil, err
	}
	l := &Lock{path: path, token: rand.Text(), stop: make(chan struct{})}
	text, err := json.Marshal(holder{self, l.token})
	if err != nil {
		return nil, err
	}
	created, err := createWhole(path, text)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if !created {
		return nil, nil
	}
	l.stopped.Go(l.beat)
	return l, nil
}

// wait waits until the lock's file is gone.
func (w *lockWatch) wait(ctx context.Context) error {
	for {
		current, there, err := w.look()
		switch {
		case err != nil || !there || current.Gone():
			return err
		case w.waiting != nil && current.PID != 0 && time.Since(w.began) > lockQuiet:
			w.waiting(current.Process)
			w.waiting = nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("lock %s, which process %d on %s holds: %w", w.path, current.PID, current.Host, context.Cause(ctx))
		case <-time.After(lockPoll):
		}
	}
}

// beat shows signs of life until the lock is released.
func (l *Lock) beat() {
	ticker := time.NewTicker(lockBeat)
	defer ticker.Stop()
	for {
		select {
		case <-l.stop:
			return
		case now := <-ticker.C:
			if l.Check() != nil {
				return
			}
			_ = os.Chtimes(l.path, now, now) // If that is impossible, another process may take over the lock; Check notices that.
		}
	}
}

// Check returns an error if the lock was taken over because its holder stopped responding for too
// long.
func (l *Lock) Check() error {
	text, err := ReadFile(l.path)
	if err != nil {
		return fmt.Errorf("lock %s is lost: %w", l.path, err)
	}
	var now holder
	if err := json.Unmarshal(text, &now); err != nil || now.Token != l.token {
		return fmt.Errorf("lock %s is lost: process %d on %s took it over because this process stopped responding; run the command again", l.path, now.PID, now.Host)
	}
	return nil
}

// Release releases the lock. If another process has taken it over, the file stays.
func (l *Lock) Release() error {
	close(l.stop)
	l.stopped.Wait()
	if l.children != nil {
		_ = l.children.Close() // The file stays, for the next holder.
	}
	if l.Check() != nil {
		return nil
	}
	if err := remove(l.path); err != nil {
		return fmt.Errorf("release the lock %s: %w", l.path, err)
	}
	return nil
}

// moveFolder renames the folder that contains the lock.
func (l *Lock) moveFolder(from, to string) error {
	close(l.stop)
	l.stopped.Wait()
	err := os.Rename(from, to)
	if err == nil {
		l.path = filepath.Join(to, filepath.Base(l.path))
	}
	l.stop = make(chan struct{})
	l.stopped.Go(l.beat)
	return err
}

// lockWatch watches a lock that another process holds. It compares the file's states with one
// another, so that the machines' clocks need not agree.
type lockWatch struct {
	path    string
	waiting func(Process)
	began   time.Time
	text    []byte
	beat    time.Time
	// since is when the lock was first seen in this state.
	since time.Time
}

// look reads who holds the lock, if anyone does, and breaks the lock of a dead process. It returns
// an error if that is impossible.
func (w *lockWatch) look() (now holder, there bool, err error) {
	text, readErr := ReadFile(w.path)
	info, statErr := os.Stat(w.path)
	if errors.Is(readErr, fs.ErrNotExist) || statErr != nil {
		return holder{}, false, nil // It was just released.
	}
	if !bytes.Equal(text, w.text) || !info.ModTime().Equal(w.beat) {
		w.text, w.beat, w.since = text, info.ModTime(), time.Now()
	}
	_ = json.Unmarshal(text, &now) // A file that is just being written, or that this user can't read, has no process.
	if now.Gone() || !now.here() && time.Since(w.since) > lockSilence {
		if err := w.breakLock(); err != nil {
			return now, true, fmt.Errorf("lock %s: process %d on %s, which held it, has ended, but its lock can't be removed: %w: remove the file, or ask its owner to", w.path, now.PID, now.Host, err)
		}
	}
	return now, true, nil
}

// breakLock removes the lock of a dead process, unless another process has already taken it over.
func (w *lockWatch) breakLock() error {
	aside := w.path + "." + rand.Text()
	if err := os.Rename(w.path, aside); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	if text, err := ReadFile(aside); err == nil && !bytes.Equal(text, w.text) {
		_ = os.Link(aside, w.path)
	}
	return os.Remove(aside)
}
