package build

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"gonbatch/internal/gomodule"
)

// localState returns a hash of the sources of those packages that belong to local modules.
func (b *builder) localState(packages []string) (string, error) {
	modules, err := gomodule.Local(b.Dir)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	for _, path := range packages {
		if dir, in := gomodule.FolderOf(path, modules); in != "" && dir != b.Dir {
			state, _ := gomodule.PackageState(dir)
			fmt.Fprintln(sum, path, state)
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
