package build

import (
	"os"
	"path/filepath"

	"golang.org/x/mod/modfile"

	"gonbatch/internal/gomodule"
	"gonbatch/kernel/tool"
)

// modules returns what identifies the code of packages that programs import; nil if go.mod can't be
// read, which the compiler reports.
func (b *builder) modules() *gomodule.Code {
	local, err := gomodule.Local(b.Dir)
	if err != nil {
		return nil
	}
	mod, err := readMod(filepath.Join(b.Dir, "go.mod"))
	if err != nil {
		return nil
	}
	cache := gomodule.CacheDir(func(name string) string { return tool.Get(b.Environ, name) })
	return &gomodule.Code{Mod: mod, Folders: local, Cache: cache}
}

func readMod(name string) (*modfile.File, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return modfile.Parse(name, text, nil)
}
