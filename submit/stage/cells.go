package stage

import (
	"cmp"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"gonbatch/internal/rundir"
	"gonbatch/submit/export"
)

// Cells returns the module's cells, with absolute directories, and with GoNB's variable for the
// directory.
func Cells(m *export.Module, workDir, home string) []rundir.Cell {
	list := slices.Clone(m.Cells)
	for i := range list {
		list[i].Dir = cellDir(list[i].Dir, workDir, home)
		env := map[string]string{rundir.EnvNotebookDir: cmp.Or(list[i].Dir, workDir)}
		maps.Copy(env, list[i].Env)
		list[i].Env = env
	}
	return list
}

// cellDir returns the absolute path of the directory to which a notebook changed: relative to the
// notebook's, or to the home folder after "~".
func cellDir(dir, workDir, home string) string {
	rest, tilde := strings.CutPrefix(dir, "~")
	switch {
	case dir == "" || filepath.IsAbs(dir):
		return dir
	case tilde && home != "" && (rest == "" || rest[0] == '/'):
		return filepath.Join(home, rest)
	}
	return filepath.Join(workDir, dir)
}
