package main

import (
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestSweep: only what nobody uses goes.
func TestSweep(t *testing.T) {
	root := t.TempDir()
	now := time.Now()
	aged := func(path string, age time.Duration) {
		if err := os.Chtimes(path, now.Add(-age), now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	listen := func(path string) *net.UnixListener {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(path, socketName), Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		l.SetUnlinkOnClose(false)
		return l
	}
	want := map[string]bool{"gonbatch-served": true, "gonbatch-killed": false, "gonbatch-begins": true, "gonbatch-module-new": true, "gonbatch-module-old": false, "other-old": true}
	paths := map[string]string{}
	for name := range want {
		paths[name] = filepath.Join(root, name)
		if err := os.Mkdir(paths[name], 0o700); err != nil {
			t.Fatal(err)
		}
	}
	defer listen(paths["gonbatch-served"]).Close()
	listen(paths["gonbatch-killed"]).Close()
	listen(paths["gonbatch-begins"]).Close()
	for _, name := range []string{"gonbatch-served", "gonbatch-killed"} {
		aged(paths[name], 2*time.Minute)
	}
	for _, name := range []string{"gonbatch-module-old", "other-old"} {
		aged(paths[name], 48*time.Hour)
	}
	sweep(root, now)
	for name, stays := range want {
		if _, err := os.Stat(paths[name]); (err == nil) != stays {
			t.Errorf("%s: %v, want it to stay: %v", name, err, stays)
		}
	}
}
