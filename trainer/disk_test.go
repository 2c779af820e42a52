package trainer_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gonbatch/checkpoint"
	"gonbatch/distributed/ranktest"
	"gonbatch/tests/tmpfs"
	"gonbatch/trainer"
)

func wantAll(t *testing.T, err error, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Fatalf("got %v, want %q in it", err, part)
		}
	}
}

// TestDiskFull: if a checkpoint doesn't fit on the disk, the training ends with an error that says
// where, and the previous checkpoint stays.
func TestDiskFull(t *testing.T) {
	dir := t.TempDir()
	tmpfs.Mount(t, dir, "size=256k") // A checkpoint of plainNet takes 24 to 32 KB.
	c := trainer.Config{MaxEpochs: 4, BatchSize: 12, Seed: 1, Checkpoint: trainer.CheckpointConfig{Dir: filepath.Join(dir, "checkpoints"), Keep: 1, EverySteps: 10}}
	full := trainer.Callback{BatchEnd: func(e *trainer.Event) error {
		if e.Step != 15 {
			return nil
		}
		for end := time.Now().Add(5 * time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) { // It is written in the background.
			if all, err := checkpoint.List(c.Checkpoint.Dir); err == nil && len(all) == 1 && all[0].Valid() {
				break
			}
		}
		err := os.WriteFile(filepath.Join(dir, "somebody's"), make([]byte, 1<<20), 0o644)
		if !errors.Is(err, unix.ENOSPC) {
			t.Errorf("the disk is not full: %v", err)
		}
		return nil
	}}
	tr, _ := newTrainer(t, c, blobTask(plainNet), trainer.WithCallbacks(full))
	failed := tr.Fit(t.Context(), ranktest.Blobs(145), nil)
	wantAll(t, failed, "save a checkpoint", c.Checkpoint.Dir, "step 20", "no space left on device", "make room")
	all, err := checkpoint.List(c.Checkpoint.Dir)
	if err != nil || len(all) != 1 || all[0].Step != 10 || !all[0].Valid() {
		t.Fatalf("checkpoints %v, %v; want the one of step 10; the training: %v", all, err, failed)
	}
	if err := os.Remove(filepath.Join(dir, "somebody's")); err != nil {
		t.Fatal(err)
	}
	tr, out := newTrainer(t, c, blobTask(plainNet))
	if err := tr.Fit(t.Context(), ranktest.Blobs(145), nil); err != nil || !strings.Contains(out.String(), "resumes after step 10") {
		t.Errorf("there is room again: %v\n%s", err, out)
	}
}

// TestReadOnlyRunDirectory: a training run that could not be resumed is refused before it begins.
func TestReadOnlyRunDirectory(t *testing.T) {
	run := t.TempDir()
	tmpfs.Mount(t, run, "size=1m")
	if err := unix.Mount("", run, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GONBATCH_RUN_DIR", run)
	_, err := trainer.New(world(t), trainer.Config{Name: "digits"}, blobTask(plainNet))
	wantAll(t, err, filepath.Join(run, "checkpoints", "digits"), "read-only file system", "checkpoint.dir")
}

// TestFolderBecomesReadOnly: in the middle of a training run.
func TestFolderBecomesReadOnly(t *testing.T) {
	dir := t.TempDir()
	tmpfs.Mount(t, dir, "size=1m")
	c := trainer.Config{MaxEpochs: 1, BatchSize: 12, Checkpoint: trainer.CheckpointConfig{Dir: dir}}
	fault := trainer.Callback{FitStart: func(*trainer.Event) error { return unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, "") }}
	tr, _ := newTrainer(t, c, blobTask(plainNet), trainer.WithCallbacks(fault))
	wantAll(t, tr.Fit(t.Context(), ranktest.Blobs(145), nil), "save a checkpoint", dir, "read-only file system")
}
