package history

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Entry is a cell that was executed.
type Entry struct {
	// Session is the number of the kernel's session, from 1.
	Session int `json:"session"`
	// Line is the cell's execution count. Zero marks the beginning of a session.
	Line int `json:"line"`
	// Source is the cell's text.
	Source string `json:"source"`
}

// Store is the history as one session sees it. Several sessions may share the file. A Store must be
// used by one goroutine at a time.
type Store struct {
	path    string
	session int
}

// mostEntries is the maximum number of entries when a session begins; if there are more, half of
// them are removed.
const mostEntries = 20_000

// Open begins a new session in the file, and creates the file if it doesn't exist.
func Open(path string) (*Store, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	s := &Store{path: path}
	return s, s.locked(func(file *os.File) error {
		text, err := io.ReadAll(file)
		if err != nil {
			return err
		}
		entries := parse(text)
		if len(entries) > mostEntries {
			if entries, err = s.trim(file, entries); err != nil {
				return err
			}
		}
		s.session = 1
		for _, e := range entries {
			s.session = max(s.session, e.Session+1)
		}
		return write(file, Entry{Session: s.session})
	})
}

// trim leaves the newer half of the entries in the file: every kernel adds to it, so it would grow
// forever.
func (s *Store) trim(file *os.File, entries []Entry) ([]Entry, error) {
	entries = entries[len(entries)-mostEntries/2:]
	var text bytes.Buffer
	for _, e := range entries {
		if err := write(&text, e); err != nil {
			return nil, err
		}
	}
	// The file is not replaced, because others may wait for its lock. It is open for appending.
	if err := file.Truncate(0); err != nil {
		return nil, err
	}
	_, err := file.Write(text.Bytes())
	return entries, err
}

// Add appends a cell of this session.
func (s *Store) Add(e Entry) error {
	e.Session = s.session
	return s.locked(func(file *os.File) error { return write(file, e) })
}

// locked calls f with the file while no other process can write it.
func (s *Store) locked(f func(*os.File) error) error {
	file, err := os.OpenFile(s.path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // it unlocks; the writes have reported their errors
	if err := lock(file); err != nil {
		return fmt.Errorf("lock %s: %w", s.path, err)
	}
	return f(file)
}

// lockTime is how long a cell waits for the history: a stopped process, or a file server, may hold
// the lock forever.
const lockTime = 2 * time.Second

func lock(file *os.File) error {
	for end := time.Now().Add(lockTime); ; time.Sleep(10 * time.Millisecond) {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil || !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("another process has kept it for %v", lockTime)
		}
	}
}

// Tail returns the last n cells of all sessions.
func (s *Store) Tail(n int) ([]Entry, error) {
	entries, err := s.all()
	return last(entries, n), err
}

// Range returns the cells start <= line < stop of a session. A session that is not positive counts
// back from this one; a stop that is not positive means the end of the session.
func (s *Store) Range(session, start, stop int) ([]Entry, error) {
	if session <= 0 {
		session += s.session
	}
	entries, err := s.all()
	return slices.DeleteFunc(entries, func(e Entry) bool {
		return e.Session != session || e.Line < start || e.Line >= stop && stop > 0
	}), err
}

// Search returns the last n cells (all, if n is not positive) whose whole text matches the pattern,
// in which * and ? are wildcards. If unique is set, it returns only the last of equal cells.
func (s *Store) Search(pattern string, n int, unique bool) ([]Entry, error) {
	entries, err := s.all()
	if err != nil {
		return nil, err
	}
	wanted := wildcards(pattern)
	lastOf := map[string]int{}
	for i, e := range entries {
		lastOf[e.Source] = i
	}
	var found []Entry
	for i, e := range entries {
		if wanted.MatchString(e.Source) && (!unique || lastOf[e.Source] == i) {
			found = append(found, e)
		}
	}
	return last(found, n), nil
}

// wildcards returns the expression for a whole text with the wildcards * and ?.
func wildcards(pattern string) *regexp.Regexp {
	quoted := strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(regexp.QuoteMeta(pattern))
	return regexp.MustCompile("(?s)^" + quoted + "$")
}

func last(entries []Entry, n int) []Entry {
	if n <= 0 || n > len(entries) {
		return entries
	}
	return entries[len(entries)-n:]
}

// all returns the cells in the file.
func (s *Store) all() ([]Entry, error) {
	text, err := os.ReadFile(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return slices.DeleteFunc(parse(text), func(e Entry) bool { return e.Line <= 0 }), err
}

// parse skips lines that are not entries: a process may have died while writing one.
func parse(text []byte) (entries []Entry) {
	for line := range bytes.Lines(text) {
		var e Entry
		if json.Unmarshal(line, &e) == nil {
			entries = append(entries, e)
		}
	}
	return entries
}

func write(w io.Writer, e Entry) error {
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	_, err = w.Write(append(text, '\n'))
	return err
}
