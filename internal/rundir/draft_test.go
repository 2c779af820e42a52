package rundir

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestDraft: nobody finds a run before it is complete; after that, its lock is held until it is
// released.
func TestDraft(t *testing.T) {
	root := t.TempDir()
	draft, err := NewDraft(t.Context(), root, "x", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := (Manifest{Name: draft.Run.Name()}).Write(draft.Dir); err != nil {
		t.Fatal(err)
	}
	if runs, err := List(root); len(runs) > 0 || err != nil {
		t.Errorf("a draft is a run: %v, %v", runs, err)
	}
	if err := draft.Publish(); err != nil {
		t.Fatal(err)
	}
	if runs, err := List(root); len(runs) != 1 || runs[0] != draft.Run || err != nil {
		t.Errorf("%v, %v", runs, err)
	}
	if _, err := os.Stat(draft.Run.RunLock()); err != nil {
		t.Errorf("the lock is gone: %v", err)
	}
	if err := draft.lock.Check(); err != nil {
		t.Error(err)
	}
	if err := draft.Release(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(draft.Run.RunLock()); err == nil {
		t.Error("the lock is still there")
	}
}

// TestSweepDrafts: the draft of a killed command is removed, and one that another command is
// filling stays.
func TestSweepDrafts(t *testing.T) {
	self, err := ThisProcess()
	if err != nil {
		t.Fatal(err)
	}
	gone, rebooted, elsewhere := self, self, self
	gone.Start += "0"
	rebooted.Boot = "another"
	elsewhere.Host = "another"
	for _, tc := range []struct {
		name, folder string
		maker        *Process
		age          time.Duration
		kept         bool
	}{
		{"of this process", ".gonbatch-x", &self, 48 * time.Hour, true},
		{"of a killed process", ".gonbatch-x", &gone, 0, false},
		{"from before a reboot", ".gonbatch-x", &rebooted, 0, false},
		{"of another machine", ".gonbatch-x", &elsewhere, time.Hour, true},
		{"of another machine, long ago", ".gonbatch-x", &elsewhere, 25 * time.Hour, false},
		{"just begun", ".gonbatch-x", nil, 0, true},
		{"begun and left", ".gonbatch-x", nil, 25 * time.Hour, false},
		{"a folder of somebody", "x-20261122-101500-4f2a", &gone, 48 * time.Hour, true},
	} {
		root := t.TempDir()
		path := filepath.Join(root, tc.folder)
		err := os.Mkdir(path, 0o700)
		if tc.maker != nil && err == nil {
			text, _ := json.Marshal(holder{*tc.maker, "token"})
			err = os.WriteFile(At(path).RunLock(), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range []string{At(path).RunLock(), path} {
			_ = os.Chtimes(file, time.Now().Add(-tc.age), time.Now().Add(-tc.age))
		}
		if err := SweepDrafts(root, time.Now()); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(path); (err == nil) != tc.kept {
			t.Errorf("%s: %v, want kept %v", tc.name, err, tc.kept)
		}
	}
	if err := SweepDrafts(filepath.Join(t.TempDir(), "none"), time.Now()); err != nil {
		t.Errorf("a root that does not exist: %v", err)
	}
}

// TestDraftIsDiscarded: a discarded draft leaves nothing.
func TestDraftIsDiscarded(t *testing.T) {
	root := t.TempDir()
	draft, err := NewDraft(t.Context(), root, "x", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := draft.Discard(); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(root); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestFindEarlierJob: a run is found by the job that it had before it was resumed, unless another
// run now has that id.
func TestFindEarlierJob(t *testing.T) {
	root := t.TempDir()
	create := func(m Manifest) Dir {
		dir, err := Create(root, "x", time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Write(dir); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	resumed := create(Manifest{JobID: "15", Resumed: []Resumption{{JobID: "12", Jobs: []string{"12", "13"}}}})
	for _, id := range []string{"12", "13", "15"} {
		if got, err := Find(root, id); got != resumed || err != nil {
			t.Errorf("job %s: %v, %v", id, got, err)
		}
	}
	newer := create(Manifest{JobID: "12"})
	if got, err := Find(root, "12"); got != newer || err != nil {
		t.Errorf("a job of another run: %v, %v", got, err)
	}
	if _, err := Find(root, "14"); err == nil || !strings.Contains(err.Error(), `no run "14"`) {
		t.Errorf("an unknown job: %v", err)
	}
}
