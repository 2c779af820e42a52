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

// TestAdminLeavesTheOwner: root may inspect and end a user's run. The user still owns everything in
// it, and would otherwise be locked out.
func TestAdminLeavesTheOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		machine.Lacks(t, "only root can be several users: run the tests as root")
	}
	const user = 65534
	for _, state := range []string{"FAILED", "PENDING"} {
		w := newWorld(t, 1)
		w.write("jobs/1", state+" "+w.run.Script()+"\n")
		err := filepath.WalkDir(w.run.Path(), func(path string, _ fs.DirEntry, err error) error {
			return errors.Join(err, os.Chown(path, user, user))
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, command := range []string{"status", "cancel", "status"} {
			if out, err := w.submit(0, command, w.run.Name()); err != nil || !strings.Contains(out, "job") {
				t.Errorf("%s: %v\n%s", command, err, out)
			}
		}
		err = filepath.WalkDir(w.run.Path(), func(path string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := entry.Info()
			if err == nil && info.Sys().(*syscall.Stat_t).Uid != user {
				t.Errorf("%s is no longer the user's", path)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}
