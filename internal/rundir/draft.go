package rundir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Draft is a run directory that is being filled. It is hidden, so that nobody finds an incomplete
// run, and becomes the run directory with Publish. Its creator holds the run's lock from the
// beginning until Release, which also shows that the draft is not abandoned.
type Draft struct {
	// Dir is where the files are until Publish, and Run is the final run directory.
	Dir, Run Dir
	lock     *Lock
}

// hiddenPrefix begins the names of the folders in a run root that are not runs, and that a killed
// command may leave behind.
const hiddenPrefix = ".gonbatch-"

// NewDraft creates a draft of a new run directory, root/<slug of name>-<date>-<time>-<random>, with
// its folders. It also creates root if necessary. Several processes may call it concurrently: each
// gets a different directory.
func NewDraft(ctx context.Context, root, name string, now time.Time) (*Draft, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("run root %q: %w", root, err)
	}
	if err := makeRoot(root); err != nil {
		return nil, rootError(root, err)
	}
	for range createAttempts {
		unique := uniqueName(name, now)
		d := &Draft{Dir: At(filepath.Join(root, hiddenPrefix+unique)), Run: At(filepath.Join(root, unique))}
		err := os.Mkdir(d.Dir.path, 0o700)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, rootError(root, err)
		}
		if _, err := os.Lstat(d.Run.path); err == nil {
			if err := os.Remove(d.Dir.path); err != nil {
				return nil, rootError(root, err)
			}
			continue
		}
		return d.fill(ctx)
	}
	return nil, fmt.Errorf("run root %s: no free name for %q after %d tries", root, name, createAttempts)
}

// makeRoot creates a run root, in which only the owner of a run can rename it.
func makeRoot(root string) error {
	if _, err := os.Stat(root); err == nil {
		return nil
	}
	if err := os.MkdirAll(root, 0o777); err != nil {
		return err
	}
	info, err := os.Stat(root)
	if err != nil || info.Mode()&0o022 == 0 {
		return err
	}
	return os.Chmod(root, info.Mode()|fs.ModeSticky)
}

// fill takes the lock and creates the folders. If that fails, it removes d.
func (d *Draft) fill(ctx context.Context) (*Draft, error) {
	lock, err := AcquireLock(ctx, d.Dir.RunLock(), nil)
	if err != nil {
		return nil, errors.Join(rootError(d.Run.Root(), err), os.RemoveAll(d.Dir.path))
	}
	d.lock = lock
	err = lock.CoverChildren(ctx)
	for _, folder := range []string{d.Dir.Sources(), d.Dir.programs(), d.Dir.Plugins(), d.Dir.Logs(), d.Dir.Checkpoints()} {
		if err == nil {
			err = os.Mkdir(folder, 0o700)
		}
	}
	if err != nil {
		return nil, errors.Join(rootError(d.Run.Root(), err), d.Discard())
	}
	return d, nil
}

// Publish turns the draft into the run directory.
func (d *Draft) Publish() error {
	if err := errors.Join(d.lock.Check(), d.lock.moveFolder(d.Dir.path, d.Run.path)); err != nil {
		return rootError(d.Run.Root(), err)
	}
	d.Dir = d.Run
	return nil
}

// Release releases the run's lock.
func (d *Draft) Release() error { return d.lock.Release() }

// Discard removes a draft that did not become a run.
func (d *Draft) Discard() error {
	return errors.Join(emptyDraft(d.Dir.path), d.lock.Release(), os.RemoveAll(d.Dir.path))
}

// Remove removes a run directory whose lock the caller holds, and releases the lock. If the process
// is killed meanwhile, the next SweepDrafts removes the rest. On a full disk, where there is no
// room for a lock, it may be nil.
func (d Dir) Remove(lock *Lock) error {
	if lock == nil {
		hidden := filepath.Join(d.Root(), hiddenPrefix+d.Name())
		if err := os.Rename(d.path, hidden); err != nil {
			return fmt.Errorf("remove run %s: %w", d.Name(), err)
		}
		return os.RemoveAll(hidden)
	}
	if err := lock.Check(); err != nil {
		return errors.Join(err, lock.Release())
	}
	hidden := At(filepath.Join(d.Root(), hiddenPrefix+d.Name()))
	if err := lock.moveFolder(d.path, hidden.path); err != nil {
		return errors.Join(fmt.Errorf("remove run %s: %w", d.Name(), err), lock.Release())
	}
	return (&Draft{Dir: hidden, Run: d, lock: lock}).Discard()
}

// emptyDraft removes everything in a draft except its lock, which goes last: without it, nobody
// would know for a day that a killed command's draft is abandoned.
func emptyDraft(path string) error {
	entries, err := os.ReadDir(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // Another process is sweeping too.
	}
	errs := []error{err}
	for _, entry := range entries {
		if file := filepath.Join(path, entry.Name()); file != At(path).RunLock() {
			errs = append(errs, os.RemoveAll(file))
		}
	}
	return errors.Join(errs...)
}

// abandonedAge is the age at which a folder counts as left by a killed command if that can't be
// checked because its process is on another machine, or unknown. A draft's process shows signs of
// life far more often, and clocks never differ that much.
const abandonedAge = 24 * time.Hour

// SweepDrafts removes the folders that this user's killed commands have left in root.
func SweepDrafts(root string, now time.Time) error {
	entries, err := os.ReadDir(root)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("run root %s: %w", root, err)
	}
	var errs []error
	for _, entry := range entries {
		path := filepath.Join(root, entry.Name())
		if entry.IsDir() && hiddenName(entry.Name()) && abandoned(path, now) {
			errs = append(errs, emptyDraft(path), os.RemoveAll(path))
		}
	}
	return errors.Join(errs...)
}

// hiddenName reports whether the name of a folder in a run root marks it as not a run.
func hiddenName(name string) bool { return strings.HasPrefix(name, hiddenPrefix) }

// abandoned reports whether the process that created the folder is gone.
func abandoned(path string, now time.Time) bool {
	info, err := os.Lstat(path)
	if stat, ok := statOf(info, err); !ok || int(stat.Uid) != os.Geteuid() {
		return false
	}
	var maker holder
	lock := At(path).RunLock()
	if ReadJSON(lock, &maker) == nil && (maker.Gone() || maker.here()) {
		return maker.Gone()
	}
	if beat, err := os.Stat(lock); err == nil {
		info = beat
	}
	return now.Sub(info.ModTime()) > abandonedAge
}
