package build

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/mod/modfile"

	"gonbatch/internal/gomodule"
)

// localModules returns the folders, by module path, of the modules whose sources may change between
// two builds: the cells' own, and those that go.mod or go.work take from folders.
func (b *builder) localModules() (map[string]string, error) {
	modules := map[string]string{}
	if err := b.addModule(modules, b.Dir, true); err != nil {
		return nil, err
	}
	name := filepath.Join(b.Dir, "go.work")
	text, err := os.ReadFile(name)
	if err != nil {
		return modules, nil
	}
	work, err := modfile.ParseWork(name, text, nil)
	if err != nil {
		return nil, err
	}
	for _, use := range work.Use {
		if err := b.addModule(modules, b.absolute(use.Path), false); err != nil {
			return nil, err
		}
	}
	b.addReplaced(modules, work.Replace)
	return modules, nil
}

// addModule adds the module in a folder. For the cells' module, it also adds the modules that it
// replaces.
func (b *builder) addModule(modules map[string]string, dir string, replaced bool) error {
	name := filepath.Join(dir, "go.mod")
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	mod, err := modfile.Parse(name, text, nil)
	if err != nil || mod.Module == nil {
		return fmt.Errorf("%s: %w", name, errUncovered)
	}
	modules[mod.Module.Mod.Path] = dir
	if replaced {
		b.addReplaced(modules, mod.Replace)
	}
	return nil
}

func (b *builder) addReplaced(modules map[string]string, replaced []*modfile.Replace) {
	for _, r := range replaced {
		if modfile.IsDirectoryPath(r.New.Path) {
			modules[r.Old.Path] = b.absolute(r.New.Path)
		}
	}
}

func (b *builder) absolute(dir string) string {
	if filepath.IsAbs(dir) {
		return dir
	}
	return filepath.Join(b.Dir, dir)
}

// localState returns a hash of the names, sizes and times of the files in those packages that
// belong to local modules.
func (b *builder) localState(packages []string) (string, error) {
	modules, err := b.localModules()
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	for _, path := range packages {
		dir, in := gomodule.FolderOf(path, modules)
		if in == "" || dir == b.Dir {
			continue
		}
		files, err := folderState(dir)
		if err != nil {
			return "", err
		}
		fmt.Fprintln(sum, path, files)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// folderState lists the files of a package.
func folderState(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var state []string
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			return nil, err
		}
		if entry.Type().IsRegular() {
			state = append(state, fmt.Sprint(entry.Name(), info.Size(), info.ModTime().UnixNano()))
			continue
		}
		if entry.Type()&fs.ModeSymlink != 0 {
			return nil, errUncovered
		}
	}
	slices.Sort(state)
	return state, embeds(dir, entries)
}

// embeds returns errUncovered if a package embeds files, which folderState doesn't look at.
func embeds(dir string, entries []fs.DirEntry) error {
	for _, entry := range entries {
		if filepath.Ext(entry.Name()) != ".go" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return err
		}
		if bytes.Contains(text, []byte("\n//go:embed ")) {
			return errUncovered
		}
	}
	return nil
}
