package stage

import (
	"path/filepath"
	"slices"
	"strings"

	"gonbatch/internal/rundir"
	"gonbatch/submit/export"
)

// Steps are those of the module, with absolute directories.
func Steps(m *export.Module, workDir, home string) []rundir.Step {
	list := slices.Clone(m.Steps)
	for i := range list {
		list[i].Dir = stepDir(list[i].Dir, workDir, home)
	}
	return list
}

// stepDir is the directory that a notebook changed to: relative to the notebook's, or to the home
// folder after "~".
func stepDir(dir, workDir, home string) string {
	rest, tilde := strings.CutPrefix(dir, "~")
	switch {
	case dir == "" || filepath.IsAbs(dir):
		return dir
	case tilde && home != "" && (rest == "" || rest[0] == '/'):
		return filepath.Join(home, rest)
	}
	return filepath.Join(workDir, dir)
}
