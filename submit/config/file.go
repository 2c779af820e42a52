package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// file is a configuration file.
type file struct {
	path string
	data []byte
}

// search collects configuration files and warnings.
type search struct {
	self     int
	files    []file
	warnings []string
}

// add reads the file in a folder, if it exists and is trusted.
func (s *search) add(dir string) (found bool, err error) {
	path := filepath.Join(dir, fileName)
	data, why, err := readTrusted(path, s.self)
	if target, linkErr := os.Readlink(path); linkErr == nil && errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("configuration: %s is a link to %s, which isn't there: correct the link, or remove it", path, target)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("configuration: %w", err)
	case why != "":
		s.warnings = append(s.warnings, fmt.Sprintf("%s is not used: %s", path, why))
		return false, nil
	}
	s.files = append(s.files, file{path, data})
	return true, nil
}

// findFiles reads the configuration files: the user's own, then the project's, the first found
// upward from places.Start. It skips a file that another user could have written, with a warning.
func findFiles(places Places) (s search, err error) {
	s.self = os.Geteuid()
	if places.UserDir != "" {
		if _, err := s.add(places.UserDir); err != nil {
			return s, err
		}
	}
	dir, err := filepath.Abs(places.Start)
	if err != nil {
		return s, err
	}
	for {
		found, err := s.add(dir)
		if err != nil && !errors.Is(err, fs.ErrPermission) {
			return s, err
		}
		if parent := filepath.Dir(dir); !found && parent != dir {
			dir = parent
			continue
		}
		return s, nil
	}
}
