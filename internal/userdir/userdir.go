// Package userdir finds gonbatch's folders in the user's home. It creates nothing.
//
//	dir, err := userdir.Cache(os.Getenv, "plugins") // ~/.cache/gonbatch/plugins
//
// The folders are those of the XDG Base Directory Specification, so a relative path in one of its
// variables counts as unset. Without HOME, the home folder is the one of the user's account.
package userdir

import (
	"errors"
	"os/user"
	"path/filepath"
	"runtime"
)

// base is a folder of the specification: its variable, and its default below the home folder.
type base struct{ variable, linux, darwin string }

var (
	cache  = base{"XDG_CACHE_HOME", ".cache", "Library/Caches"}
	config = base{"XDG_CONFIG_HOME", ".config", "Library/Application Support"}
	state  = base{"XDG_STATE_HOME", ".local/state", ".local/state"}
)

// Cache returns gonbatch's folder for what can be made or fetched again, extended by elem.
func Cache(getenv func(string) string, elem ...string) (string, error) {
	return cache.find(getenv, elem)
}

// Config returns gonbatch's folder for the user's configuration, extended by elem.
func Config(getenv func(string) string, elem ...string) (string, error) {
	return config.find(getenv, elem)
}

// State returns gonbatch's folder for what it remembers, such as the history, extended by elem.
func State(getenv func(string) string, elem ...string) (string, error) {
	return state.find(getenv, elem)
}

// Home returns the user's home folder.
func Home(getenv func(string) string) (string, error) {
	if home := getenv("HOME"); home != "" {
		return home, nil
	}
	u, err := user.Current()
	if err != nil || u.HomeDir == "" {
		return "", errors.New("no home folder: HOME is not set, and the user's account has none; set HOME")
	}
	return u.HomeDir, nil
}

func (b base) find(getenv func(string) string, elem []string) (string, error) {
	root := getenv(b.variable)
	if !filepath.IsAbs(root) {
		home, err := Home(getenv)
		if err != nil {
			return "", err
		}
		root = filepath.Join(home, b.linux)
		if runtime.GOOS == "darwin" {
			root = filepath.Join(home, b.darwin)
		}
	}
	return filepath.Join(append([]string{root, "gonbatch"}, elem...)...), nil
}
