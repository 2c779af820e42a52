package relay

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// environFile is the file of CellDir that has the names of the variables that %env has set, a line
// each.
const environFile = "environ"

// noteEnviron adds the variables that the cell sets to those of the session.
func (e *execution) noteEnviron() {
	r := e.relay
	if r.opts.CellDir == "" || len(e.prepared.Env) == 0 || e.prepared.Err != nil {
		return
	}
	names := append(Environ(r.opts.CellDir), e.prepared.Env...)
	slices.Sort(names)
	text := strings.Join(slices.Compact(names), "\n")
	if err := os.WriteFile(filepath.Join(r.opts.CellDir, environFile), []byte(text), 0o600); err != nil {
		r.log(err)
	}
}

// Environ are the names of the variables that %env has set in the session whose CellDir this is, in
// order.
func Environ(cellDir string) []string {
	text, err := os.ReadFile(filepath.Join(cellDir, environFile))
	if err != nil {
		return nil
	}
	return strings.Split(string(text), "\n")
}
