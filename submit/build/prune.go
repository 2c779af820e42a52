package build

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

const (
	// keptBuilds is how many builds stay in the cache; those used last stay.
	keptBuilds = 50
	// abandonedAfter is the age at which an unfinished build is no longer running.
	abandonedAfter = 24 * time.Hour
)

// entryName matches the name of a folder that publish made.
var entryName = regexp.MustCompile(`^[0-9a-f]{32}$`)

// touch marks a build as just used.
func touch(dir string, now time.Time) error { return os.Chtimes(dir, now, now) }

// prune removes all but the newest keep builds in root, and the remains of killed builds. It skips
// builds that another process has locked, and files that are not ours.
func prune(root string, keep int, now time.Time) error {
	entries, err := os.ReadDir(root)
	if err != nil {
		return err
	}
	var builds []fs.FileInfo
	var errs []error
	for _, entry := range entries {
		info, err := entry.Info()
		switch {
		case err != nil || !entry.IsDir():
		case entryName.MatchString(entry.Name()):
			builds = append(builds, info)
		case strings.HasPrefix(entry.Name(), newPrefix) && now.Sub(info.ModTime()) > abandonedAfter:
			errs = append(errs, os.RemoveAll(filepath.Join(root, entry.Name())))
		}
	}
	for _, old := range beyond(keep, builds) {
		errs = append(errs, removeBuild(filepath.Join(root, old.Name())))
	}
	return errors.Join(errs...)
}

// beyond returns all but the newest keep files.
func beyond(keep int, files []fs.FileInfo) []fs.FileInfo {
	slices.SortFunc(files, func(a, b fs.FileInfo) int {
		return cmp.Or(b.ModTime().Compare(a.ModTime()), cmp.Compare(a.Name(), b.Name()))
	})
	return files[min(keep, len(files)):]
}

// removeBuild removes a build and its lock, unless another process holds the lock.
func removeBuild(dir string) (err error) {
	lock := flock.New(dir + ".lock")
	if locked, err := lock.TryLock(); err != nil || !locked {
		return err
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	err = os.Remove(dir + ".lock")
	if errors.Is(err, fs.ErrNotExist) { // Another process has just removed it.
		err = nil
	}
	return errors.Join(os.RemoveAll(dir), err)
}
