package compilecache

import (
	"os"
	"path/filepath"
	"time"

	"gonbatch/internal/rundir"
)

// lockEnding is the extension of locks.
const lockEnding = ".lock"

// How long to wait for a process that compiles. The holder of a lock shows a sign of life every few
// seconds; file systems may show it late.
var (
	patience = 30 * time.Minute
	silence  = time.Minute
)

// The pauses between two checks: an eighth of the time waited so far, so that the wait is never
// much longer than the compilation, and a thousand ranks waiting for a long compilation don't
// overload the file system.
const (
	shortestPause = 20 * time.Millisecond
	longestPause  = time.Second
)

// lock makes this process the one that compiles the program for a key. It returns without the lock
// if another process has stored the program, seems to hang, or takes too long, or if locks are
// impossible: then several processes may compile it, and the last one stores it.
func (c *Cache) lock(key Key) (unlock func()) {
	path := filepath.Join(c.dir, key.String()+lockEnding)
	alive := pulse{path: path}
	for start := time.Now(); ; {
		lock, err := rundir.TryLock(path)
		switch {
		case lock != nil:
			return func() { _ = lock.Release() }
		case err != nil, c.has(key), alive.silent(), time.Since(start) > patience:
			return func() {}
		}
		time.Sleep(min(max(time.Since(start)/8, shortestPause), longestPause))
	}
}

// has reports whether there is an entry for the key.
func (c *Cache) has(key Key) bool {
	_, err := os.Lstat(c.path(key))
	return err == nil
}

// pulse watches for signs of life of a lock's holder. It compares the file's times with one
// another, so that the machines' clocks need not agree.
type pulse struct {
	path  string
	beat  time.Time
	since time.Time
}

// silent reports whether the lock has not changed for too long.
func (p *pulse) silent() bool {
	info, err := os.Lstat(p.path)
	if err != nil {
		return false // It was just released.
	}
	if beat := info.ModTime(); !beat.Equal(p.beat) {
		p.beat, p.since = beat, time.Now()
	}
	return time.Since(p.since) > silence
}
