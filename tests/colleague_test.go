package tests

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gonbatch/internal/bounded"
	"gonbatch/internal/rundir"
	"gonbatch/tests/cluster"
	"gonbatch/tests/tmpfs"
)

// nobody is the ID of another user of the machine.
const nobody = 65534

// colleague returns a function that runs submit as another user, who may read the user's files and
// has their own copy of the command.
func (u user) colleague(t *testing.T) func(args ...string) (string, error) {
	t.Helper()
	program, err := submitBinary()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("/tmp", "colleague-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	copied := filepath.Join(dir, "submit")
	if err := os.WriteFile(copied, text, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return func(args ...string) (string, error) {
		// Only the started program gets the capability, so the program changes to the folder
		// itself.
		cmd := exec.CommandContext(t.Context(), "env", append([]string{"--chdir", u.folder, copied}, args...)...)
		cmd.Env = append(append(os.Environ(), u.env...), "HOME="+dir)
		// The run keeps writing files that only its owner may read, so the colleague may read any
		// file.
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}, AmbientCaps: []uintptr{unix.CAP_DAC_READ_SEARCH}}
		out, err := bounded.CombinedOutput(cmd)
		return string(out), err
	}
}

// TestStatusForAColleague checks that a user who may read another user's run sees its state and its
// log by its path, and changes nothing.
func TestStatusForAColleague(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Nodes(1))
	u := newUser(t, c.Env()...)
	look := u.colleague(t)
	id := job(t, u.mustSubmit(t, u.write(t, "shared.ipynb", waits)))
	run := u.run(t)
	must := func(want string, args ...string) bool {
		t.Helper()
		out, err := look(args...)
		if err != nil || strings.Contains(out, "warning") {
			t.Errorf("submit %q: %v\n%s", args, err, out)
		}
		return strings.Contains(out, want)
	}
	eventually(t, "it runs", func() bool { return must("state:         running", "status", run.Path()) })
	refused := func(args ...string) {
		t.Helper()
		if out, err := look(args...); err == nil || !strings.Contains(out, "permission denied") {
			t.Errorf("submit %q: %v\n%s", args, err, out)
		}
	}
	refused("cancel", run.Path())
	refused("status", run.Name())
	u.release(t)
	eventually(t, "it is completed", func() bool { return must("state:         completed", "status", run.Path()) })
	if !must("and 1 run of other users", "status") || !must("released\n", "logs", run.Path()) || !must("released\n", "logs", "-f", run.Path()) {
		t.Error("the list or the log does not show the end")
	}
	if m, err := rundir.ReadManifest(run); err != nil || m.Ended != nil {
		t.Errorf("a colleague has changed the manifest: %+v, %v", m, err)
	}
	refused("resume", run.Path())
	wantAll(t, u.mustSubmit(t, "status", id), "state:         completed")
}

// TestStatusOnAFullDisk checks that status shows the state of a run even if it cannot record it.
func TestStatusOnAFullDisk(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	tmpfs.Mount(t, filepath.Join(u.folder, "runs"), "size=600m")
	u.env = cluster.Start(t, cluster.Nodes(1)).Env() // Started now, so that its nodes see the mount.
	id := job(t, u.mustSubmit(t, u.write(t, "full.ipynb", "%%\nfmt.Println(\"done\")")))
	run := u.run(t)
	eventually(t, "it has ended", func() bool { _, err := os.Stat(run.ExitStatus()); return err == nil })
	waiting := job(t, u.mustSubmit(t, "--directive=--hold", u.write(t, "held.ipynb", "%%\nprintln(1)")))
	fill(t, filepath.Join(run.Root(), "filler"))
	wantAll(t, u.mustSubmit(t, "status"), "completed", "warning", "no space left on device")
	wantAll(t, u.mustSubmit(t, "status", id), "state:         completed")
	wantAll(t, u.mustSubmit(t, "logs", "-f", id), "done\n")
	wantAll(t, u.mustSubmit(t, "cancel", waiting), "job "+waiting+": cancelled", "no space left on device")
	if err := os.Remove(filepath.Join(run.Root(), "filler")); err != nil {
		t.Fatal(err)
	}
	if out := u.mustSubmit(t, "status", id); !strings.Contains(out, "state:         completed") || strings.Contains(out, "warning") {
		t.Errorf("%s", out)
	}
}

// fill leaves no room on the file system of a file.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()              //nolint:errcheck // the disk is full: that is the point
	for quiet := 0; quiet < 3; { // What processes that have just ended still held becomes free a little later.
		written := 0
		for size := 1 << 20; size > 0; {
			n, err := f.Write(make([]byte, size))
			if written += n; err != nil {
				size /= 2
			}
		}
		if quiet++; written > 0 {
			quiet = 0
		}
		time.Sleep(100 * time.Millisecond)
	}
}
