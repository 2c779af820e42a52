package build

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"gonbatch/internal/gomodule"
)

// localState returns a hash of the sources of those packages that belong to local modules, and of
// these modules' go.mod: it has the version of the language, and the versions of other modules.
func (b *builder) localState(packages []string) (string, error) {
	modules, err := gomodule.Local(b.Dir)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	for _, path := range slices.Sorted(maps.Keys(modules)) {
		if modules[path] != b.Dir {
			mod, err := os.ReadFile(filepath.Join(modules[path], "go.mod"))
			fmt.Fprintf(sum, "%s %v %d\n%s\n", path, err, len(mod), mod)
		}
	}
	for _, path := range packages {
		if dir, in := gomodule.FolderOf(path, modules); in != "" && dir != b.Dir {
			state, _ := gomodule.PackageState(dir)
			fmt.Fprintln(sum, path, state)
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
