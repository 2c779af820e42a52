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
