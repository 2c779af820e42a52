package magic

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gonbatch/kernel/cell"
)

// TestStale: there is a warning about exactly the declarations that the session has and the job
// doesn't, for the session's cells and for the saved notebook's.
func TestStale(t *testing.T) {
	m, dir := newMagics(t, "completed")
	m.opts.Environ = append(m.opts.Environ, "JPY_SESSION_NAME="+filepath.Join(dir, "mine.ipynb"))
	const saved = `{"nbformat":4,"nbformat_minor":5,"metadata":{},"cells":[
		{"cell_type":"markdown","source":"func b() {}","metadata":{}},
		{"cell_type":"code","source":"func a() {}","metadata":{},"outputs":[],"execution_count":null},
		{"cell_type":"code","source":"%%\\na()","metadata":{},"outputs":[],"execution_count":null}]}`
	if err := os.WriteFile(filepath.Join(dir, "mine.ipynb"), []byte(saved), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, args     string
		earlier, cells []string
		warned         string
	}{
		{name: "nothing was edited", cells: []string{"func a() {}", "%%\na()"}},
		{name: "an edit", earlier: []string{"func a() {}\nfunc b() {}"}, cells: []string{"func a() {}", "%%\na()"}, warned: "b"},
		{name: "forgotten", earlier: []string{"func a() {}\nfunc b() {}", "%rm b"}, cells: []string{"func a() {}", "%%\na()"}},
		{name: "a cell that is left out", cells: []string{"%result 6 as r\nvar x = r.Metrics()", "%%\n1"}},
		{name: "the saved notebook lacks a cell", args: "--saved", cells: []string{"func a() {}", "func c() {}", "%%\na()"}, warned: "c"},
		{name: "the saved notebook", args: "--saved", cells: []string{"func a() {}"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &small{cells: tt.cells, earlier: tt.earlier}
			if err := m.Run(t.Context(), s, cell.Magic{Name: "submit", Args: tt.args}); err != nil {
				t.Fatal(err)
			}
			s.locked(func() {
				_, warning, found := strings.Cut(s.text.String(), "warning: the session still has ")
				names, _, _ := strings.Cut(warning, ", which no cell declares any more")
				if found != (tt.warned != "") || names != tt.warned {
					t.Errorf("warned of %q, want %q:\n%s", names, tt.warned, s.text.String())
				}
			})
		})
	}
}
