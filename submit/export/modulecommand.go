package export

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"gonbatch/internal/gocell"
	"gonbatch/submit/export/gomod"
)

// shellInModule is a !* line: what it does to go.mod is replayed at the export.
func (s *session) shellInModule(m played) error {
	for _, part := range strings.Split(m.Rest(), "&&") {
		words := gocell.Words(s.expandKernelDir(part))
		switch {
		case slices.Equal(words, []string{"rm", "-f", "go.work"}), slices.Equal(words, []string{"rm", "go.work"}):
			continue // Each export starts without one.
		case len(words) < 2 || words[0] != "go":
			s.warn(m.cell, m.Line, "the shell command is not run on the cluster, where the kernel's temporary folder is not: !"+m.Text)
			return nil
		}
		edits, reason := gomod.Edits(words)
		if reason != "" {
			s.warn(m.cell, m.Line, fmt.Sprintf("!%s is not replayed: %s", m.Text, reason))
		}
		s.mods = append(s.mods, edits...)
	}
	return nil
}

// kernelDir is the variable with the kernel's folder: the notebook's, or where %cd went.
var kernelDir = regexp.MustCompile(`\$(GONB_DIR\b|\{GONB_DIR\})`)

// expandKernelDir replaces the variable with the kernel's folder.
func (s *session) expandKernelDir(command string) string {
	dir := s.dir
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(s.notebookDir, dir)
	}
	return kernelDir.ReplaceAllLiteralString(command, dir)
}
