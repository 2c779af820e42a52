package export

import (
	"fmt"
	"strings"
)

// checkScript returns an error if the notebook does not fit into one Go file.
func (m *Module) checkScript() error {
	programs := m.Programs()
	switch {
	case len(programs) == 0:
		return fmt.Errorf("%s has no program to write as a script", m.Notebook)
	case len(programs) > 1:
		return fmt.Errorf("%s has %d programs, and a script has one: pick one with --cell (%s), or export a module", m.Notebook, len(programs), strings.Join(cellNames(programs), ", "))
	case len(m.Cells) > 1:
		return fmt.Errorf("%s has shell commands, and a script has only Go: pick the program with --cell %s, or export a module", m.Notebook, programs[0].Name)
	case programs[0].Test:
		return fmt.Errorf("%s: cell %s runs tests, which need a module: export one", m.Notebook, programs[0].Name)
	}
	for _, name := range m.FileNames() {
		if strings.HasPrefix(name, programs[0].Name+"/") && name != programs[0].Source() {
			return fmt.Errorf("%s: cell %s needs %s, and a script is one file: export a module", m.Notebook, programs[0].Name, name)
		}
	}
	return nil
}

// Script returns the only program of a module exported with Options.Script, as one file.
func (m *Module) Script() []byte { return m.Files[m.Programs()[0].Source()] }
