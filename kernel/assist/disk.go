package assist

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
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
	for _, dir := range d.localDirs() {
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

// localDirs returns the folders that the module's go.mod and go.work name.
func (d *disk) localDirs() []string {
	var dirs []string
	add := func(dir string) {
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(d.dir, dir)
		}
		if dir != d.dir {
			dirs = append(dirs, dir)
		}
	}
	if text, err := os.ReadFile(filepath.Join(d.dir, "go.mod")); err == nil {
		if mod, err := modfile.Parse("go.mod", text, nil); err == nil {
			for _, r := range mod.Replace {
				if modfile.IsDirectoryPath(r.New.Path) {
					add(r.New.Path)
				}
			}
		}
	}
	if text, err := os.ReadFile(filepath.Join(d.dir, "go.work")); err == nil {
		if work, err := modfile.ParseWork("go.work", text, nil); err == nil {
			for _, use := range work.Use {
				add(use.Path)
			}
		}
	}
	return dirs
}
