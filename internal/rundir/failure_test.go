package rundir_test

import (
	"errors"
	"io/fs"
	"os"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gonbatch/internal/rundir"
)

func TestFailure(t *testing.T) {
	dir := rundir.At(t.TempDir())
	if _, err := rundir.ReadFailure(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no failure yet: %v", err)
	}
	want := rundir.Failure{Kind: rundir.Died, Rank: 3, Host: "n2", Step: 41, Error: "killed", ExitCode: 137,
		Time: time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC), LogTail: []string{"a", "b"}}
	if first, err := want.Write(dir); !first || err != nil {
		t.Fatalf("Write: %v, %v", first, err)
	}
	if got, err := rundir.ReadFailure(dir); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("ReadFailure: %+v, %v; want %+v", got, err, want)
	}
	text, err := os.ReadFile(dir.FailurePath())
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{`"kind": "died"`, `"rank": 3`, `"host": "n2"`, `"step": 41`, `"error": "killed"`, `"time": "2026-11-21T10:00:00Z"`, `"exit_code": 137`, `"log_tail": [`} {
		if !strings.Contains(string(text), key) {
			t.Errorf("%s is not in:\n%s", key, text)
		}
	}
	for range 2 {
		if err := rundir.ClearFailure(dir); err != nil {
			t.Error(err)
		}
	}
	if entries, err := os.ReadDir(dir.Path()); err != nil || len(entries) != 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

// TestFailureHasOneWriter: many ranks may find the failure at once; one of them records it,
// completely.
func TestFailureHasOneWriter(t *testing.T) {
	dir := rundir.At(t.TempDir())
	var firsts, winner atomic.Int64
	var group sync.WaitGroup
	for rank := range 20 {
		group.Go(func() {
			first, err := rundir.Failure{Kind: rundir.Stuck, Rank: rank, Error: strings.Repeat("x", 10000)}.Write(dir)
			if err != nil {
				t.Error(err)
			}
			if first {
				firsts.Add(1)
				winner.Store(int64(rank))
			}
		})
	}
	group.Wait()
	f, err := rundir.ReadFailure(dir)
	if err != nil || firsts.Load() != 1 || f.Rank != int(winner.Load()) {
		t.Errorf("%d first writers, %d last, recorded rank %d, %v", firsts.Load(), winner.Load(), f.Rank, err)
	}
}

func TestFailureInAFolderThatIsGone(t *testing.T) {
	if _, err := (rundir.Failure{Rank: 7}).Write(rundir.At("/nowhere/run")); err == nil || !strings.Contains(err.Error(), "rank 7") || !strings.Contains(err.Error(), "/nowhere/run") {
		t.Errorf("Write: %v", err)
	}
}
