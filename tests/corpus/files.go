package corpus

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"gonbatch/submit/modules"
)

// newFiles returns the files in dir that were not staged, or that have changed, with their content.
func newFiles(c Case, dir string) (map[string]string, error) {
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (name == runRoot || strings.HasPrefix(name, ".ipynb_checkpoints")):
			return filepath.SkipDir
		case entry.IsDir() || name == filepath.Base(c.Path) || name == modules.LockFile(filepath.Base(c.Path)):
			return nil
		}
		data, err := os.ReadFile(path)
		if staged, ok := c.Files[name]; err == nil && (!ok || staged != string(data)) {
			files[name] = string(data)
		}
		return err
	})
	if len(files) == 0 {
		return nil, err
	}
	return files, err
}
