package relay

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// environFile is the file in CellDir with the names of the variables that %env has set, one per
// line.
const environFile = "environ"

// noteEnviron adds the variables that the cell sets to the session's list.
func (e *execution) noteEnviron() {
	r := e.relay
	if len(e.prepared.Env) == 0 || e.prepared.Err != nil {
		return
	}
	names := append(Environ(r.opts.CellDir), e.prepared.Env...)
	slices.Sort(names)
	text := strings.Join(slices.Compact(names), "\n")
	if err := os.WriteFile(filepath.Join(r.opts.CellDir, environFile), []byte(text), 0o600); err != nil {
		r.log(err)
	}
}

// Environ returns the sorted names of the variables that %env has set in the session with this
// CellDir.
func Environ(cellDir string) []string {
	text, err := os.ReadFile(filepath.Join(cellDir, environFile))
	if err != nil {
		return nil
	}
	return strings.Split(string(text), "\n")
}
