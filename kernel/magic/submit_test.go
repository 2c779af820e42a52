package magic

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gonbatch/kernel/cell"
)

// TestSessionKept: a submitted cell gets the values that the session has kept.
func TestSessionKept(t *testing.T) {
	m, dir := newMagics(t, "completed")
	if err := m.Run(t.Context(), &small{cells: []string{"var x = 1"}}, cell.Magic{Name: "%submit", Args: "--dry-run", Body: "x++"}); err != nil {
		t.Fatal(err)
	}
	if args, err := os.ReadFile(filepath.Join(dir, "args")); err != nil || !strings.Contains(string(args), "--cell [9] --session-kept /tmp/kept ") {
		t.Errorf("submit %s, %v", args, err)
	}
}

// TestNotebookOfJob: every job of a session is a run of the user's notebook. A control character in
// its name is not in the job's.
func TestNotebookOfJob(t *testing.T) {
	for _, call := range []cell.Magic{{Name: "submit"}, {Name: "%submit", Body: "println(1)"}} {
		m, dir := newMagics(t, "completed")
		m.opts.Environ = append(m.opts.Environ, "JPY_SESSION_NAME=a\tb.ipynb")
		call.Args = "--dry-run"
		if err := m.Run(t.Context(), &small{cells: []string{"%%\nprintln(2)"}}, call); err != nil {
			t.Fatal(err)
		}
		args, err := os.ReadFile(filepath.Join(dir, "args"))
		if want := "--json --name a b --of " + filepath.Join(dir, "a\tb.ipynb") + " "; err != nil || !strings.HasPrefix(string(args), want) {
			t.Errorf("%s: submit %s, %v, want %s", call.Name, args, err, want)
		}
	}
}

// TestProgramArguments: words after -- are for the programs, also those that %submit knows.
func TestProgramArguments(t *testing.T) {
	m, dir := newMagics(t, "completed")
	if err := m.Run(t.Context(), &small{cells: []string{"%%\nprintln(1)"}}, cell.Magic{Name: "submit", Args: "--dry-run --nodes 2 -- -h --help --saved --name x"}); err != nil {
		t.Fatal(err)
	}
	args, err := os.ReadFile(filepath.Join(dir, "args"))
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(args), "\n")
	if !strings.HasPrefix(first, "--json --name notebook --of ") || !strings.Contains(first, " --dry-run --nodes 2 ") || !strings.HasSuffix(first, ".ipynb -- -h --help --saved --name x") {
		t.Errorf("submit %s", first)
	}
}

// TestSubmitElsewhere: after %cd, the notebook of %%submit too is in the notebook's folder, where
// the files are that it embeds.
func TestSubmitElsewhere(t *testing.T) {
	m, dir := newMagics(t, "completed")
	elsewhere := t.TempDir()
	m.opts.Dir = func() string { return elsewhere }
	if err := m.Run(t.Context(), &small{cells: []string{"var x = 1"}}, cell.Magic{Name: "%submit", Args: "--dry-run", Body: "x++"}); err != nil {
		t.Fatal(err)
	}
	args, err := os.ReadFile(filepath.Join(dir, "args"))
	if err != nil || !strings.Contains(string(args), " "+dir+"/.session-") {
		t.Errorf("%v: submit %s", err, args)
	}
}

// TestSubmitFromAnotherFolder: after %cd, the session's notebook is still next to the user's, where
// the job's own %cd begins, and the user's is found by a relative name.
func TestSubmitFromAnotherFolder(t *testing.T) {
	for _, args := range []string{"--dry-run", "--saved --dry-run"} {
		m, dir := newMagics(t, "completed")
		elsewhere, file := t.TempDir(), filepath.Join(dir, "mine.ipynb")
		m.opts.Dir = func() string { return elsewhere }
		m.opts.Environ = append(m.opts.Environ, "JPY_SESSION_NAME=mine.ipynb")
		if err := os.WriteFile(file, []byte(`{"nbformat":4,"metadata":{},"cells":[{"cell_type":"code","metadata":{},"source":"var x = 1"}]}`), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := m.Run(t.Context(), &small{cells: []string{"var x = 1"}}, cell.Magic{Name: "submit", Args: args}); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(dir, "args"))
		if err != nil {
			t.Fatal(err)
		}
		got, _, _ := strings.Cut(string(text), "\n")
		want := "--json --name mine --of " + file + " --dry-run " + dir + "/.session-"
		if args != "--dry-run" {
			want = "--json --dry-run " + file
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("%%submit %s: submit %s, want %s", args, got, want)
		}
	}
}

// TestSessionMod: a job gets the session's module versions.
func TestSessionMod(t *testing.T) {
	tests := []struct {
		name   string
		module func() (string, error)
		want   []string
	}{
		{"a session", func() (string, error) { return "/tmp/gonb_1", nil }, []string{"--session-mod", filepath.Join("/tmp/gonb_1", "go.mod")}},
		{"before its first cell", func() (string, error) { return "", errors.New("no module yet") }, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := New(Options{Module: tt.module}).sessionMod(); !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
