package rundir

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func newStartRun(t *testing.T) Dir {
	t.Helper()
	d, err := Create(t.TempDir(), "x", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestStarts(t *testing.T) {
	d := newStartRun(t)
	if n, err := CountStarts(d); n != 0 || err != nil {
		t.Errorf("a new run: %d starts, %v", n, err)
	}
	for want := range 3 {
		if n, err := AddStart(d, "job 12"); n != want+1 || err != nil {
			t.Errorf("start %d has the number %d, %v", want+1, n, err)
		}
	}
}

// TestSuperseded: a program of a start that the scheduler has given up notices that another start
// has begun.
func TestSuperseded(t *testing.T) {
	d := newStartRun(t)
	for range 2 {
		if _, err := AddStart(d, "job"); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		name, dir, restarts string
		want                bool
	}{
		{"the last start", d.Path(), "1", false},
		{"an earlier start", d.Path(), "0", true},
		{"no launcher that counts", d.Path(), "", false},
		{"no run directory", "", "0", false},
		{"a run directory that is gone", "/dev/null/none", "0", false},
	} {
		env := map[string]string{EnvDir: tc.dir, EnvRestarts: tc.restarts}
		if got := ReadEnv(func(name string) string { return env[name] }).Superseded(); got != tc.want {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
}

func TestFinishedSteps(t *testing.T) {
	d := newStartRun(t)
	if IsFinished(d, "train") {
		t.Error("a cell is finished before the first start")
	}
	for _, cell := range []string{"train", "shell-2"} {
		if err := MarkFinished(d, cell, 2); err != nil {
			t.Fatal(err)
		}
	}
	names, err := FinishedCells(d)
	if err != nil || !slices.Equal(names, []string{"shell-2", "train"}) || !IsFinished(d, "train") || IsFinished(d, "other") {
		t.Errorf("finished cells: %v, %v", names, err)
	}
	if text, err := os.ReadFile(d.finishedCell("train")); err != nil || string(text) != "2\n" {
		t.Errorf("mark %q, %v", text, err)
	}
}

func TestCheckRoot(t *testing.T) {
	root := t.TempDir()
	file := filepath.Join(root, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		root: "<nil>", filepath.Join(root, "new", "newer"): "<nil>",
		filepath.Join(file, "runs"): "cannot write in the run root FILE/runs: not a directory (choose another folder on the shared file system with --run-root)",
		"/proc/runs":                "cannot write in the run root /proc/runs: no such file or directory (choose another folder on the shared file system with --run-root)",
	} {
		if got := fmt.Sprint(CheckRoot(path)); strings.ReplaceAll(got, file, "FILE") != want {
			t.Errorf("CheckRoot(%s): %s, want %s", path, got, want)
		}
	}
	if entries, err := os.ReadDir(root); err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

// TestRemovedRun: a run directory that was removed does not come back.
func TestRemovedRun(t *testing.T) {
	dir := At(filepath.Join(t.TempDir(), "gone"))
	if err := MarkFinished(dir, "train", 1); err == nil {
		t.Error("a cell of a run that is gone was marked")
	}
	if _, err := os.Stat(dir.Path()); err == nil {
		t.Error("the run directory is back")
	}
}
