package magic

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestSessionKept: a submitted cell gets the values that the session has kept.
func TestSessionKept(t *testing.T) {
	m, dir := newMagics(t, "completed")
	m.opts.Kept = "/tmp/kept"
	if err := m.Run(t.Context(), &small{cells: []string{"var x = 1"}}, Call{Name: "%submit", Body: "x++"}); err != nil {
		t.Fatal(err)
	}
	if args, err := os.ReadFile(filepath.Join(dir, "args")); err != nil || !strings.Contains(string(args), "--cell 2 --session-kept /tmp/kept ") {
		t.Errorf("submit %s, %v", args, err)
	}
}

// TestSubmitElsewhere: after %cd, the job's notebook is still in the notebook's folder, where the
// files are that it embeds and where its runs are found.
func TestSubmitElsewhere(t *testing.T) {
	m, dir := newMagics(t, "completed")
	elsewhere := t.TempDir()
	m.opts.Dir = func() string { return elsewhere }
	for _, call := range []Call{{Name: "submit"}, {Name: "%submit", Body: "x++"}} {
		if err := m.Run(t.Context(), &small{cells: []string{"var x = 1", "%%\nx++"}}, call); err != nil {
			t.Fatal(err)
		}
	}
	args, err := os.ReadFile(filepath.Join(dir, "args"))
	for line := range strings.Lines(string(args)) {
		if strings.Contains(line, ".ipynb") && (!strings.Contains(line, dir+"/.session-") || strings.Contains(line, "--of ") && !strings.Contains(line, "--of "+dir+"/notebook.ipynb")) {
			t.Errorf("submit %s", line)
		}
	}
	if err != nil || strings.Count(string(args), "/.session-") != 2 {
		t.Errorf("%v\n%s", err, args)
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
		{"no session", nil, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := New(Options{Module: tt.module}).sessionMod(); !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
