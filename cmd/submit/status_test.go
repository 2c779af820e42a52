package main

import (
	"bytes"
	"io"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"gonbatch/checkpoint/folder"
	"gonbatch/internal/rundir"
)

// TestStatusShowsProgress: how often a run was started, what has ended well, and the newest of all trainings' checkpoints.
func TestStatusShowsProgress(t *testing.T) {
	dir, err := rundir.Create(filepath.Join(t.TempDir(), "odd [a]* "), "x", newApp().now())
	if err != nil {
		t.Fatal(err)
	}
	r := run{dir: dir, manifest: rundir.Manifest{Steps: []rundir.Step{{Name: "prepare"}, {Name: "train"}}}}
	show := func() string {
		var out bytes.Buffer
		if err := showProgress(&out, r); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	if got, want := show(), "cells:         0 of 2 finished\n"; got != want {
		t.Errorf("a new run: %q, want %q", got, want)
	}
	for range 3 {
		if _, err := rundir.AddStart(dir, "local"); err != nil {
			t.Fatal(err)
		}
	}
	if err := rundir.MarkFinished(dir, "prepare", 1); err != nil {
		t.Fatal(err)
	}
	for i, root := range []string{filepath.Join(dir.Checkpoints(), "first"), filepath.Join(dir.Checkpoints(), "train", "second")} {
		time.Sleep(2 * time.Millisecond) // Checkpoints are timed to the millisecond.
		draft, err := folder.NewDraft(root, int64(40-i))
		if err != nil {
			t.Fatal(err)
		}
		if err := draft.Write("weights", func(w io.Writer) error { _, err := io.WriteString(w, "w"); return err }); err != nil {
			t.Fatal(err)
		}
		if err := draft.Commit(folder.Manifest{}); err != nil {
			t.Fatal(err)
		}
	}
	want := regexp.MustCompile(`^restarts:      2\ncells:         1 of 2 finished\ncheckpoint:    after step 39, of \S+ \S+, in .*/checkpoints/train/second\n$`)
	if got := show(); !want.MatchString(got) {
		t.Errorf("%q does not match %s", got, want)
	}
}
