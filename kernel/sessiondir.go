package kernel

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"gonbatch/internal/userdir"
)

// sessionsFolder is the folder of sessions in the user's cache.
const sessionsFolder = "sessions"

// sessionParents returns the folders that may hold a session's folder, the best first. A session's
// programs run there, which some clusters forbid in their temporary folders.
func sessionParents(env environment) []string {
	var dirs []string
	for _, dir := range []string{env.get("TMPDIR"), "/tmp", "/var/tmp"} {
		if filepath.IsAbs(dir) {
			dirs = append(dirs, dir)
		}
	}
	if dir, err := userdir.Cache(env.get, sessionsFolder); err == nil {
		dirs = append(dirs, dir)
	}
	return dirs
}

// makeSessionDir creates a session's folder in the first of the parents in which programs run.
// reason says why earlier parents were skipped.
func makeSessionDir(parents []string) (dir string, reason, err error) {
	for _, parent := range parents {
		dir, tryErr := trySessionDir(parent)
		if tryErr == nil {
			return dir, reason, nil
		}
		reason = errors.Join(reason, fmt.Errorf("no session in %s: %w", parent, tryErr))
	}
	return "", nil, fmt.Errorf("%w\nset TMPDIR to a folder in which this user may write and run programs", reason)
}

func trySessionDir(parent string) (string, error) {
	if filepath.Base(parent) == sessionsFolder { // the kernel must not create the others
		if err := os.MkdirAll(parent, 0o700); err != nil {
			return "", err
		}
	}
	dir, err := os.MkdirTemp(parent, sessionPrefix)
	if err != nil {
		return "", err
	}
	if err := tryProgram(dir); err != nil {
		return "", errors.Join(err, os.RemoveAll(dir))
	}
	return dir, nil
}

// tryProgram runs a program in a folder.
func tryProgram(dir string) error {
	name := filepath.Join(dir, "try")
	if err := os.WriteFile(name, []byte("#!/bin/sh\nexit 0\n"), 0o700); err != nil {
		return err
	}
	defer os.Remove(name) //nolint:errcheck // the session's folder goes with it
	for tries := 0; ; tries++ {
		err := exec.Command(name).Run()
		// Another thread that is starting a process may briefly hold the file open for writing.
		if !errors.Is(err, unix.ETXTBSY) || tries == 100 {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
}
