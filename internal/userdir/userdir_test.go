package userdir_test

import (
	"os/user"
	"path/filepath"
	"runtime"
	"testing"

	"gonbatch/internal/machine"
	"gonbatch/internal/userdir"
)

func TestFolders(t *testing.T) {
	if runtime.GOOS != "linux" {
		machine.Lacks(t, "Linux: the expected paths are Linux's")
	}
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		find func(func(string) string, ...string) (string, error)
		env  map[string]string
		want string
	}{
		{"XDG", userdir.Cache, map[string]string{"XDG_CACHE_HOME": "/cache", "HOME": "/home/ada"}, "/cache/gonbatch/a/b"},
		{"a relative XDG does not count", userdir.Cache, map[string]string{"XDG_CACHE_HOME": "cache", "HOME": "/home/ada"}, "/home/ada/.cache/gonbatch/a/b"},
		{"HOME", userdir.Cache, map[string]string{"HOME": "/home/ada"}, "/home/ada/.cache/gonbatch/a/b"},
		{"the account's home", userdir.Cache, nil, filepath.Join(me.HomeDir, ".cache/gonbatch/a/b")},
		{"configuration", userdir.Config, map[string]string{"HOME": "/home/ada"}, "/home/ada/.config/gonbatch/a/b"},
		{"state", userdir.State, map[string]string{"XDG_STATE_HOME": "/state", "HOME": "/home/ada"}, "/state/gonbatch/a/b"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			got, err := tc.find(func(k string) string { return tc.env[k] }, "a", "b")
			if err != nil || got != tc.want {
				t.Errorf("got %q, %v, want %q", got, err, tc.want)
			}
		})
	}
}
