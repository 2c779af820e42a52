package build

import (
	"path/filepath"

	"gonbatch/internal/gomodule"
	"gonbatch/kernel/tool"
)

// modules returns what identifies the code of packages that programs import; nil if go.mod can't be
// read, which the compiler reports.
func (b *builder) modules() *gomodule.Code {
	local, err := b.localModules()
	if err != nil {
		return nil
	}
	mod, err := readMod(filepath.Join(b.modDir(), "go.mod"))
	if err != nil {
		return nil
	}
	cache := gomodule.CacheDir(func(name string) string { return tool.Get(b.Environ, name) })
	return &gomodule.Code{Mod: mod, Folders: local, Cache: cache}
}
