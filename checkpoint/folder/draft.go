package folder

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// Draft is a checkpoint that is being written. It must be used by one goroutine at a time.
type Draft struct {
	root, path string
	step       int64
	files      []File
	litter     []error
	done       bool
	// exchange swaps two folders in one operation of the file system; a test removes it.
	exchange func(a, b string) error
}

// NewDraft begins the checkpoint of a step. First it removes the files that killed processes left
// in root.
func NewDraft(root string, step int64) (*Draft, error) {
	if step < 0 {
		return nil, fmt.Errorf("checkpoint: step %d: it can't be negative", step)
	}
	if err := makeRoot(root); err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	litter, err := sweep(root)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: clean up %s: %w", root, err)
	}
	d := &Draft{root: root, path: aside(root, savingPrefix, step), step: step, litter: litter, exchange: exchange}
	if err := d.checkTarget(); err != nil {
		return nil, err
	}
	if err := os.Mkdir(d.path, 0o777); err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	return d, nil
}

func makeRoot(root string) error {
	if _, err := os.Stat(root); err == nil {
		return nil
	}
	if err := os.MkdirAll(root, 0o777); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(root))
}

// Litter returns errors about files of earlier processes, or of this draft, that couldn't be
// removed. They are worth a warning, not a failure: the next draft tries again.
func (d *Draft) Litter() []error { return d.litter }

// Target returns the path that the checkpoint will have.
func (d *Draft) Target() string { return filepath.Join(d.root, Name(d.step)) }

// checkTarget refuses to replace anything that isn't a checkpoint.
func (d *Draft) checkTarget() error {
	_, err := os.Lstat(d.Target())
	if errors.Is(err, fs.ErrNotExist) || err == nil && ours(d.Target()) {
		return nil
	}
	return errors.Join(fmt.Errorf("checkpoint: %s already exists but has no %s, so it isn't a checkpoint: move it", d.Target(), manifestName), err)
}

// ours reports whether a folder, or the target of a link, is or was a checkpoint of this package.
func ours(path string) bool {
	_, err := os.Lstat(filepath.Join(path, manifestName))
	return err == nil
}

// Write adds a file with the content that write writes, and returns when it is on disk.
func (d *Draft) Write(name string, write func(io.Writer) error) error {
	if err := checkFile(name); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	file, err := writeFile(filepath.Join(d.path, name), write)
	if err != nil {
		return d.explain(name, err)
	}
	d.files = append(d.files, file)
	return nil
}

// Commit writes checkpoint.json and gives the folder its name. It replaces a checkpoint of the same
// step; readers find the old one or the new one, complete.
func (d *Draft) Commit(m Manifest) error {
	m.Step, m.Time, m.Files = d.step, time.Now().UTC().Truncate(time.Millisecond), d.files
	text, err := m.encode()
	if err != nil {
		return fmt.Errorf("checkpoint: step %d: %s: %w", d.step, manifestName, err)
	}
	_, err = writeFile(filepath.Join(d.path, manifestName), func(w io.Writer) error { _, err := w.Write(text); return err })
	if err == nil {
		err = syncFolder(d.path)
	}
	if err == nil {
		err = d.place()
	}
	if err != nil {
		return d.explain(manifestName, err)
	}
	d.done = true
	return nil
}

// place gives the folder its name, in one operation of the file system if possible.
func (d *Draft) place() error {
	err := os.Rename(d.path, d.Target())
	if err != nil && !errors.Is(err, fs.ErrExist) && !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, unix.ENOTDIR) {
		return err
	}
	if err != nil {
		if err := d.replace(); err != nil {
			return err
		}
	}
	return syncFolder(d.root)
}

func (d *Draft) replace() error {
	if err := d.exchange(d.path, d.Target()); err == nil {
		d.discardOld(d.path) // The old checkpoint has the draft's name now.
		return nil
	}
	// A network file system may not support the exchange. Between the two renames, readers find the
	// old checkpoint under its other name.
	old := aside(d.root, replacedPrefix, d.step)
	if err := os.Rename(d.Target(), old); err != nil {
		return err
	}
	if err := os.Rename(d.path, d.Target()); err != nil {
		return errors.Join(err, os.Rename(old, d.Target()))
	}
	d.discardOld(old)
	return nil
}

// discardOld removes the replaced checkpoint, after the new one's name is on disk.
func (d *Draft) discardOld(path string) {
	err := syncFolder(d.root)
	if err == nil {
		err = os.RemoveAll(path)
	}
	if err != nil {
		d.litter = append(d.litter, fmt.Errorf("checkpoint: remove %s: %w", path, err))
	}
}

func exchange(a, b string) error {
	return unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
}

// Discard removes a draft that wasn't committed.
func (d *Draft) Discard() error {
	if d.done {
		return nil
	}
	d.done = true
	return os.RemoveAll(d.path)
}

// explain says what failed, and how to resume if the disk is full.
func (d *Draft) explain(file string, err error) error {
	switch {
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		err = fmt.Errorf("%w: make room, or keep fewer checkpoints; earlier ones are intact", err)
	case errors.Is(err, fs.ErrNotExist):
		err = fmt.Errorf("%w: is another process saving to %s?", err, d.root)
	}
	return fmt.Errorf("checkpoint: save step %d to %s: %s: %w", d.step, d.root, file, err)
}
