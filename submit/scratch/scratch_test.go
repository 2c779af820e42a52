package scratch

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestSweep: only unused folders are removed.
func TestSweep(t *testing.T) {
	root := t.TempDir()
	now := time.Now()
	aged := func(path string, age time.Duration) {
		if err := os.Chtimes(path, now.Add(-age), now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	listen := func(path string) *net.UnixListener {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(path, Socket), Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		l.SetUnlinkOnClose(false)
		return l
	}
	want := map[string]bool{
		"gonbatch-recorder-served": true, "gonbatch-recorder-killed": false, "gonbatch-recorder-begins": true,
		"gonbatch-module-new": true, "gonbatch-module-old": false, "gonbatch-preflight-old": false, "other-old": true,
		"gonbatch-kernel-old": true, "gonbatch-sockets-old": true, "gonbatch-warm-old": true, // An idle kernel's.
	}
	paths := map[string]string{}
	for name := range want {
		paths[name] = filepath.Join(root, name)
		if err := os.Mkdir(paths[name], 0o700); err != nil {
			t.Fatal(err)
		}
	}
	served := listen(paths["gonbatch-recorder-served"])
	defer served.Close() //nolint:errcheck // the sweep may not have removed it
	killed, begins := listen(paths["gonbatch-recorder-killed"]), listen(paths["gonbatch-recorder-begins"])
	if err := errors.Join(killed.Close(), begins.Close()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"gonbatch-recorder-served", "gonbatch-recorder-killed"} {
		aged(paths[name], 2*time.Minute)
	}
	for name, path := range paths {
		if strings.HasSuffix(name, "-old") {
			aged(path, 48*time.Hour)
		}
	}
	Sweep(root, now)
	for name, stays := range want {
		if _, err := os.Stat(paths[name]); (err == nil) != stays {
			t.Errorf("%s: %v, want it to stay: %v", name, err, stays)
		}
	}
}

// TestNoTemporaryFolder: the error for a missing TMPDIR names it, and says what to do.
func TestNoTemporaryFolder(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	t.Setenv("TMPDIR", none)
	_, err := Make(Module)
	if err == nil || !strings.Contains(err.Error(), "in "+none+": no such file or directory; make that folder") || !strings.Contains(err.Error(), "set TMPDIR") {
		t.Error(err)
	}
}
