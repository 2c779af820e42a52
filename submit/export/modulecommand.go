package export

import (
	"fmt"
	"maps"
	"path/filepath"
	"strings"

	"gonbatch/submit/export/gomod"
	"gonbatch/submit/export/nbcell"
)

// ModuleCommand is a !* line that changes the kernel's go.mod or go.work. submit/modules runs it
// again for a job, in the order of the notebook.
type ModuleCommand struct {
	nbcell.Site
	// Text is the shell command.
	Text string
	// Dir is the kernel's folder at that point, and Env what %env has set.
	Dir string
	Env map[string]string
	// MayFail is set if the cell continues when the command fails.
	MayFail bool
}

// shellInModule handles a !* line: its changes to go.mod are made again for a job.
func (s *session) shellInModule(m played) error {
	line := gomod.ReadLine(m.Rest())
	switch {
	case !line.Changes:
		s.warn(m.cell, m.Line, "the shell command is not run on the cluster, which doesn't have the kernel's temporary folder (write ! instead of !* if the command doesn't need that folder): !"+m.Text)
		return nil
	case len(line.Left) > 0:
		s.warn(m.cell, m.Line, fmt.Sprintf("a job runs only the parts that change modules, so without %q: !%s", strings.Join(line.Left, ", "), m.Text))
	}
	dir := s.dir
	if !filepath.IsAbs(dir) && !strings.HasPrefix(dir, "~") {
		dir = filepath.Join(s.notebookDir, dir)
	}
	s.mods = append(s.mods, &ModuleCommand{
		Site: nbcell.Site{Ref: m.cell.Ref, Line: m.Line}, Text: m.Rest(), Dir: dir, Env: maps.Clone(s.env), MayFail: s.mayFail,
	})
	return nil
}
