package magic

import (
	"errors"
	"path/filepath"
	"slices"
	"testing"
)

// TestSessionMod: a job gets the versions of modules that the session has.
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
