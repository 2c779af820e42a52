package rundir

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestMain lets the test program hold a lock as another process, until it is killed.
func TestMain(m *testing.M) {
	if path := os.Getenv("GONBATCH_TEST_LOCK"); path != "" {
		lock, err := AcquireLock(context.Background(), path, nil)
		if err == nil {
			err = lock.CoverChildren(context.Background())
		}
		if err == nil && os.Getenv("GONBATCH_TEST_CHILD") != "" {
			err = exec.Command("sh", "-c", os.Getenv("GONBATCH_TEST_CHILD")).Start()
		}
		if err != nil {
			panic(err)
		}
		fmt.Println("locked")
		select {}
	}
	if path := os.Getenv("GONBATCH_TEST_TAKE"); path != "" {
		lock, err := AcquireLock(context.Background(), At(path).RunLock(), nil)
		if err == nil {
			err = lock.Release()
		}
		if err != nil {
			panic(err)
		}
		return
	}
	os.Exit(m.Run())
}

// TestLockExcludes: however many processes want a lock, only one at a time holds it.
func TestLockExcludes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	var holders, most atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 5 {
				lock, err := AcquireLock(t.Context(), path, nil)
				if err != nil {
					t.Error(err)
					return
				}
				if n := holders.Add(1); n > 1 {
					most.Store(n)
				}
				if err := lock.Check(); err != nil {
					t.Error(err)
				}
				holders.Add(-1)
				if err := lock.Release(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if n := most.Load(); n > 1 {
		t.Errorf("%d held the lock at once", n)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the lock is still there: %v", err)
	}
}

// TestLockOfADeadProcess: nobody waits for a killed holder, and its lock is broken only once.
func TestLockOfADeadProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "GONBATCH_TEST_LOCK="+path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "locked\n" {
		t.Fatalf("%q, %v", line, err)
	}
	waited := make(chan Process, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 5*lockQuiet)
	defer cancel()
	if _, err := AcquireLock(ctx, path, func(p Process) { waited <- p }); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("a lock that another process holds: %v", err)
	}
	if p := <-waited; p.PID != cmd.Process.Pid {
		t.Errorf("it waits for process %d, want %d", p.PID, cmd.Process.Pid)
	}
	if lock, err := TryLock(path); lock != nil || err != nil {
		t.Errorf("TryLock of a lock that another process holds: %v, %v", lock, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // It was killed.
	lock, err := TryLock(path)
	if err != nil || lock == nil {
		t.Fatalf("TryLock of a dead process' lock: %v, %v", lock, err)
	}
	if err := lock.Release(); err != nil {
		t.Error(err)
	}
	if lock, err = AcquireLock(t.Context(), path, nil); err != nil {
		t.Fatal(err)
	}
	if err := lock.Release(); err != nil {
		t.Error(err)
	}
}

// TestLockCoversChildren: the lock of a killed process is free when the command that it started has
// ended.
func TestLockCoversChildren(t *testing.T) {
	dir := t.TempDir()
	path, release := filepath.Join(dir, "lock"), filepath.Join(dir, "release")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "GONBATCH_TEST_LOCK="+path, "GONBATCH_TEST_CHILD=until test -e '"+release+"'; do sleep 0.05; done")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "locked\n" {
		t.Fatalf("%q, %v", line, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // It was killed.
	lock, err := AcquireLock(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*lockQuiet)
	defer cancel()
	if err := lock.CoverChildren(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the killed process' command goes on, and the lock is free: %v", err)
	}
	if !At(dir).IsChanging() {
		t.Error("the killed process' command goes on, and nothing shows it")
	}
	if err := os.WriteFile(release, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(lock.CoverChildren(t.Context()), lock.Release()); err != nil || At(dir).IsChanging() {
		t.Errorf("%v, changing: %t", err, At(dir).IsChanging())
	}
}

// TestLockOfAnotherMachine: a lock is taken over from a machine that is silent, but not from one
// that shows signs of life.
func TestLockOfAnotherMachine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	text, err := json.Marshal(holder{Process{Host: "another.machine", Boot: "another", PID: 7, Start: "1"}, "token"})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	watch := lockWatch{path: path}
	there := func() bool {
		_, _, _ = watch.look() // The file says it.
		_, err := os.Stat(path)
		return err == nil
	}
	silent := func() { watch.since = watch.since.Add(-2 * lockSilence) }
	if !there() {
		t.Fatal("it is taken away at once")
	}
	silent()
	beat := time.Now().Add(time.Hour) // Its clock differs.
	if err := os.Chtimes(path, beat, beat); err != nil {
		t.Fatal(err)
	}
	if !there() {
		t.Fatal("it is taken away though its holder has given a sign of life")
	}
	silent()
	if there() {
		t.Error("it is not taken away")
	}
}

// TestLostLock: a process that stopped for so long that its lock was taken over notices that, and
// does not release the new holder's lock.
func TestLostLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	old, err := AcquireLock(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := (&lockWatch{path: path, text: text}).breakLock(); err != nil {
		t.Error(err)
	}
	now, err := AcquireLock(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := (&lockWatch{path: path, text: text}).breakLock(); err != nil { // A third process has also seen the old one.
		t.Error(err)
	}
	if err := old.Check(); err == nil {
		t.Error("the old holder believes that it still has the lock")
	}
	if err := errors.Join(old.Release(), now.Check(), now.Release()); err != nil {
		t.Error(err)
	}
}

// TestManifestChangesAtOnce: no concurrent change of a manifest is lost.
func TestManifestChangesAtOnce(t *testing.T) {
	dir := At(t.TempDir())
	if err := (Manifest{}).Write(dir); err != nil {
		t.Fatal(err)
	}
	const writers, each = 6, 5
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for range each {
				if err := UpdateManifest(t.Context(), dir, nil, func(m *Manifest) { m.CommandLine = append(m.CommandLine, "x") }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if m, err := ReadManifest(dir); err != nil || len(m.CommandLine) != writers*each {
		t.Errorf("%d changes, %v; want %d", len(m.CommandLine), err, writers*each)
	}
}

func TestAdopt(t *testing.T) {
	resumed := []Resumption{{JobID: "7", Starts: 1}}
	for _, tc := range []struct {
		name, starts string
		before       Manifest
		id, cluster  string
		changed      bool
	}{
		{name: "queued by hand", starts: "job 7 2026-11-21T10:15:00+0000 east\n", id: "7", cluster: "east", changed: true},
		{name: "of an older script", starts: "job 7 2026-11-21T10:15:00+0000\n", id: "7", changed: true},
		{name: "not started", before: Manifest{JobID: "7"}, id: "7"},
		{name: "known", starts: "job 7 x east\n", before: Manifest{JobID: "7", Cluster: "east"}, id: "7", cluster: "east"},
		{name: "its cluster is not known", starts: "job 7 x east\n", before: Manifest{JobID: "7"}, id: "7", cluster: "east", changed: true},
		{name: "the one before a resume", starts: "job 7 x east\n", before: Manifest{JobID: "8", Resumed: resumed}, id: "8"},
		{name: "the one before the one before a resume", starts: "job 7 x east\n", before: Manifest{JobID: "9", Resumed: []Resumption{{JobID: "8", Jobs: []string{"7"}, Starts: 1}}}, id: "9"},
		{name: "the one before a resume, requeued", starts: "job 7 x east\njob 7 x east\n", before: Manifest{JobID: "8", Resumed: resumed}, id: "7", cluster: "east", changed: true},
		{name: "resumed by hand", starts: "job 7 x east\njob 9 x west\n", before: Manifest{Resumed: resumed}, id: "9", cluster: "west", changed: true},
		{name: "queued twice", starts: "job 7 x\njob 9 x\n", before: Manifest{JobID: "7", State: "completed"}, id: "9", changed: true},
		{name: "requeued", starts: "job 7 x east\njob 7 x east\n", before: Manifest{JobID: "7", Cluster: "east", State: "failed", StartsAtEnd: new(1)}, id: "7", cluster: "east", changed: true},
		{name: "cancelled before its start, and requeued", starts: "job 7 x east\n", before: Manifest{JobID: "7", Cluster: "east", State: "cancelled", StartsAtEnd: new(0)}, id: "7", cluster: "east", changed: true},
		{name: "ended", starts: "job 7 x east\n", before: Manifest{JobID: "7", Cluster: "east", State: "failed", StartsAtEnd: new(1)}, id: "7", cluster: "east"},
		{name: "on this machine", starts: "local 2026-11-21T10:15:00Z\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := At(t.TempDir())
			if tc.starts != "" {
				if err := os.WriteFile(dir.Starts(), []byte(tc.starts), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			m := tc.before
			changed, err := m.Adopt(dir)
			if err != nil || changed != tc.changed || m.JobID != tc.id || m.Cluster != tc.cluster {
				t.Errorf("Adopt = %t, %v, job %q on %q; want %t, job %q on %q", changed, err, m.JobID, m.Cluster, tc.changed, tc.id, tc.cluster)
			}
			if (m.JobID != tc.before.JobID || tc.before.StartsAtEnd != nil && tc.changed) && (m.State != "" || m.StartsAtEnd != nil) {
				t.Errorf("the job that has started has the state %q, which is of an end after start %v", m.State, m.StartsAtEnd)
			}
		})
	}
}
