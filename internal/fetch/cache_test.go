package fetch_test

import (
	"os/user"
	"path/filepath"
	"runtime"
	"testing"

	"gonbatch/internal/fetch"
	"gonbatch/internal/machine"
)

func TestCacheDir(t *testing.T) {
	if runtime.GOOS != "linux" {
		machine.Lacks(t, "Linux: the expected paths are Linux's")
	}
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		env  map[string]string
		want string
	}{
		{"XDG", map[string]string{"XDG_CACHE_HOME": "/cache", "HOME": "/home/ada"}, "/cache/gonbatch/plugins/cpu"},
		{"a relative XDG does not count", map[string]string{"XDG_CACHE_HOME": "cache", "HOME": "/home/ada"}, "/home/ada/.cache/gonbatch/plugins/cpu"},
		{"HOME", map[string]string{"HOME": "/home/ada"}, "/home/ada/.cache/gonbatch/plugins/cpu"},
		{"the account's home", nil, filepath.Join(me.HomeDir, ".cache/gonbatch/plugins/cpu")},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			got, err := fetch.CacheDir(func(k string) string { return tc.env[k] }, "plugins", "cpu")
			if err != nil || got != tc.want {
				t.Errorf("got %q, %v, want %q", got, err, tc.want)
			}
		})
	}
}
