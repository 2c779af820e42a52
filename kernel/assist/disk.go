package assist

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"gonbatch/internal/gomodule"
)

// A user's folder with more than mostFiles files is not watched, and the others are checked at most
// once per watchPause.
const (
	mostFiles  = 3000
	watchPause = time.Second
)

// disk remembers the files on disk that matter to a module: its own go.mod, and the sources of
// modules that it takes from folders.
type disk struct {
	dir    string
	files  map[string]time.Time
	looked time.Time
}

func newDisk(dir string) *disk {
	d := &disk{dir: dir}
	d.files = d.look()
	return d
}

// changes lists the files that have changed since the previous call.
func (d *disk) changes() []string {
	if time.Since(d.looked) < watchPause {
		return nil
	}
	files := d.look()
	var changed []string
	for name, at := range files {
		if before, ok := d.files[name]; !ok || !before.Equal(at) {
			changed = append(changed, name)
		}
	}
	for name := range d.files {
		if _, ok := files[name]; !ok {
			changed = append(changed, name)
		}
	}
	d.files = files
	return changed
}

func (d *disk) look() map[string]time.Time {
	d.looked = time.Now()
	files := map[string]time.Time{}
	for _, name := range []string{"go.mod", "go.sum", "go.work"} {
		note(files, filepath.Join(d.dir, name))
	}
	folders, _ := gomodule.Local(d.dir) // gopls reports what is wrong with them.
	for _, dir := range folders {
		if dir == d.dir {
			continue
		}
		_ = filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil || len(files) > mostFiles:
				return fs.SkipAll
			case entry.IsDir() && name != dir && ignored(entry.Name()):
				return fs.SkipDir
			case filepath.Ext(name) == ".go" || entry.Name() == "go.mod":
				note(files, name)
			}
			return nil
		})
	}
	return files
}

// ignored reports whether the go command skips folders of that name.
func ignored(name string) bool {
	return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || name == "testdata" || name == "node_modules"
}

func note(files map[string]time.Time, name string) {
	if info, err := os.Stat(name); err == nil {
		files[name] = info.ModTime()
	}
}
