package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"gonbatch/internal/machine"
)

// TestAdminOnlyLooks: root may look at a user's run by its path, and changes nothing in it. What is
// in it could lead root to files and processes of its own.
func TestAdminOnlyLooks(t *testing.T) {
	if os.Geteuid() != 0 {
		machine.Lacks(t, "only root can be several users: run the tests as root")
	}
	const user = 65534
	read := func(path string) string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Error(err)
		}
		return string(text)
	}
	for _, state := range []string{"FAILED", "PENDING"} {
		w := newWorld(t, 1)
		w.write("jobs/1", state+" "+w.run.Script()+"\n")
		err := filepath.WalkDir(w.run.Path(), func(path string, _ fs.DirEntry, err error) error {
			return errors.Join(err, os.Chown(path, user, user))
		})
		if err != nil {
			t.Fatal(err)
		}
		before := read(w.run.ManifestPath())
		if out, err := w.submit(0, "status", w.run.Path()); err != nil || !strings.Contains(out, strings.ToLower(state)) {
			t.Errorf("%v\n%s", err, out)
		}
		if out, err := w.submit(0, "status"); err != nil || !strings.Contains(out, "and 1 run of other users") {
			t.Errorf("%v\n%s", err, out)
		}
		for _, command := range []string{"cancel", "resume"} {
			if out, err := w.submit(0, command, w.run.Path()); err == nil || !strings.Contains(out, "belongs to another user (uid 65534)") {
				t.Errorf("%s: %v\n%s", command, err, out)
			}
		}
		err = filepath.WalkDir(w.run.Path(), func(path string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := entry.Info()
			if err == nil && info.Sys().(*syscall.Stat_t).Uid != user {
				t.Errorf("%s is not the user's", path)
			}
			return err
		})
		if err != nil || read(w.run.ManifestPath()) != before || w.jobs()["1"] != state {
			t.Errorf("%v, the jobs are %v, the manifest is\n%s\nwas\n%s", err, w.jobs(), read(w.run.ManifestPath()), before)
		}
	}
}
