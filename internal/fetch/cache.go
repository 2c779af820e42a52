package fetch

import (
	"errors"
	"os/user"
	"path/filepath"
	"runtime"
)

// CacheDir returns the folder for gonbatch's downloads in the user's cache, extended by elem. It
// creates nothing. getenv is os.Getenv, except in tests.
func CacheDir(getenv func(string) string, elem ...string) (string, error) {
	root := getenv("XDG_CACHE_HOME")
	if !filepath.IsAbs(root) {
		home := getenv("HOME")
		if home == "" {
			u, err := user.Current()
			if err != nil || u.HomeDir == "" {
				return "", errors.New("no folder for downloads: neither XDG_CACHE_HOME nor HOME is set, and the user has no home; set HOME")
			}
			home = u.HomeDir
		}
		root = filepath.Join(home, ".cache")
		if runtime.GOOS == "darwin" {
			root = filepath.Join(home, "Library", "Caches")
		}
	}
	return filepath.Join(append([]string{root, "gonbatch"}, elem...)...), nil
}
