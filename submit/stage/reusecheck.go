package stage

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"go/scanner"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"gonbatch/internal/gocell"
	"gonbatch/internal/rundir"
	"gonbatch/submit"
	"gonbatch/submit/export"
)

// checkPrograms refuses to reuse a cell whose program, embedded files, environment or folder would
// be different now: a cell's text doesn't show these.
func (r *Reuse) checkPrograms(m *export.Module, spec submit.JobSpec) error {
	old, err := rundir.ReadManifest(r.dir)
	if err != nil {
		return err
	}
	oldSpec, err := submit.ReadSpec(r.dir)
	if err != nil {
		return err
	}
	if name := differs(oldSpec.Env, spec.Env); name != "" {
		return r.changed("the variable %s (--env)", name)
	}
	for _, now := range spec.Cells {
		i := slices.IndexFunc(old.Cells, func(c rundir.Cell) bool { return c.Name == r.was[now.Name] })
		if i < 0 {
			continue
		}
		if name := differs(old.Cells[i].Env, now.Env); name != "" {
			return r.changed("the variable %s of cell %s (%%env)", name, now.Name)
		}
		if was := old.Cells[i].Dir; was != now.Dir {
			return r.changed("the folder of cell %s, which was %q and is %q now,", now.Name, was, now.Dir)
		}
		if err := r.checkSources(m, now); err != nil {
			return err
		}
	}
	return nil
}

// checkSources compares the files that a cell's program was compiled from.
func (r *Reuse) checkSources(m *export.Module, cell rundir.Cell) error {
	for _, name := range m.FileNames() {
		if !strings.HasPrefix(name, cell.Name+"/") {
			continue
		}
		file := r.was[cell.Name] + strings.TrimPrefix(name, cell.Name)
		was, err := rundir.ReadFile(filepath.Join(r.dir.Sources(), file))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if now := m.Files[name]; bytes.Equal(was, now) || name == cell.Source() && bytes.Equal(code(was), code(now)) {
			continue
		}
		if name == cell.Source() {
			return r.changed("the program of cell %s", cell.Name)
		}
		return r.changed("the file %s of cell %s", strings.TrimPrefix(name, cell.Name+"/"), cell.Name)
	}
	return nil
}

// changed returns the error for something that has changed since the run.
func (r *Reuse) changed(format string, args ...any) error {
	return fmt.Errorf("%s has changed since run %s; start from an earlier cell, or run all cells", fmt.Sprintf(format, args...), r.dir.Name())
}

// code returns the tokens of a program, one on each line, without its line comments, which may
// contain cell numbers and Markdown, but with directives.
func code(program []byte) []byte {
	var kept []byte
	for t := range gocell.Tokens(string(program), scanner.ScanComments) {
		if t.Kind == token.COMMENT && strings.HasPrefix(t.Text, "//") && !strings.HasPrefix(t.Text, "//go:") {
			continue
		}
		kept = append(append(kept, cmp.Or(t.Text, t.Kind.String())...), '\n')
	}
	return kept
}

// differs returns a name for which two environments have different values; "" if there is none.
func differs(a, b map[string]string) string {
	for _, name := range slices.Sorted(maps.Keys(a)) {
		if value, ok := b[name]; !ok || value != a[name] {
			return name
		}
	}
	for _, name := range slices.Sorted(maps.Keys(b)) {
		if _, ok := a[name]; !ok {
			return name
		}
	}
	return ""
}
