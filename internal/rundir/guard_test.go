package rundir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestForeignFiles: what another user may have put into a shared run root neither blocks a command
// nor fills its memory, and doesn't hide other runs.
func TestForeignFiles(t *testing.T) {
	root := t.TempDir()
	good := newRun(t, root, "good", testTime, "7")
	for name, plant := range map[string]func(path string) error{
		"pipe":   func(path string) error { return syscall.Mkfifo(path, 0o644) },
		"folder": func(path string) error { return os.Mkdir(path, 0o755) },
		"socket": func(path string) error { return syscall.Mknod(path, syscall.S_IFSOCK|0o644, 0) },
		"huge":   func(path string) error { return errors.Join(os.WriteFile(path, nil, 0o644), os.Truncate(path, 20<<30)) },
		"option": func(path string) error {
			return os.WriteFile(path, []byte(`{"format": 1, "job_id": "-M evil"}`), 0o644)
		},
	} {
		d := At(filepath.Join(root, "x-20290101-000000-"+name))
		if err := errors.Join(os.Mkdir(d.Path(), 0o755), plant(d.ManifestPath())); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		if _, err := ReadManifest(d); err == nil || time.Since(begin) > 20*time.Second {
			t.Errorf("%s: %v after %v", name, err, time.Since(begin))
		}
	}
	runs, err := List(root)
	if err != nil || len(runs) != 6 {
		t.Errorf("%v, %v", runs, err)
	}
	if d, err := Find(root, "7"); err != nil || d != good {
		t.Errorf("%v, %v", d, err)
	}
}

// TestStartOfAnOption: a start whose job is an option of a command has no job.
func TestStartOfAnOption(t *testing.T) {
	d := newRun(t, t.TempDir(), "x", testTime, "")
	for _, word := range []string{"job -M now here", "job 12;ls now here", "job 12_[1-3] now here", "job 5.server now"} {
		if _, err := AddStart(d, word); err != nil {
			t.Fatal(err)
		}
	}
	starts, err := ReadStarts(d)
	if err != nil || len(starts) != 4 || starts[0].ID != "" || starts[1].ID != "" || starts[2].ID != "12_[1-3]" || starts[3].ID != "5.server" {
		t.Errorf("%+v, %v", starts, err)
	}
}

func TestCheckPrivate(t *testing.T) {
	root := t.TempDir()
	path := func(name string) string { return filepath.Join(root, name) }
	err := errors.Join(os.Mkdir(path("own"), 0o700), os.Mkdir(path("open"), 0o700), os.Chmod(path("open"), 0o770), os.Symlink(path("own"), path("link")), os.WriteFile(path("file"), nil, 0o600))
	if os.Geteuid() == 0 {
		err = errors.Join(err, os.Mkdir(path("foreign"), 0o700), os.Chown(path("foreign"), 65534, 65534))
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"own": "", "none": "", "open": "other users may write in ", "link": "is no folder but L", "file": "is no folder but ", "foreign": "belongs to another user"} {
		if _, err := os.Lstat(path(name)); name == "foreign" && errors.Is(err, fs.ErrNotExist) {
			continue // Only root can make one.
		}
		if err := CheckPrivate(path(name)); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}

func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{"run é网\tx\n": "run é网\tx\n", "a\x1b[2Jb\r\x07": `a\x1b[2Jb\x0d\x07`, "\u009b31m": `\x9b31m`} {
		if got := Printable(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
