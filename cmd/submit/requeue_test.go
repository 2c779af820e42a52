package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gonbatch/internal/bounded"
	"gonbatch/internal/rundir"
)

// TestRequeue: if SLURM restarts a job under the same id after its end was recorded, the job's
// status is current and it can be cancelled, while it waits and while it runs. A final end stays
// recorded, even when SLURM has forgotten the job.
func TestRequeue(t *testing.T) {
	for _, state := range []string{"FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "CANCELLED"} {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 1)
			says := func(command, want string) {
				t.Helper()
				if out, err := w.submit(0, command, w.run.Name()); err != nil || !strings.Contains(out, want) {
					t.Fatalf("submit %s does not say %q: %v\n%s", command, want, err, out)
				}
			}
			ended := map[string]string{"FAILED": "failed", "TIMEOUT": "timed out", "NODE_FAIL": "node failed", "PREEMPTED": "preempted", "CANCELLED": "cancelled"}[state]
			w.write("jobs/1", "PENDING "+w.run.Script()+"\n")
			start := func() {
				t.Helper()
				if _, err := rundir.AddStart(w.run, "job 1 now here"); err != nil {
					t.Fatal(err)
				}
				w.set("1", "RUNNING")
			}
			start()
			says("status", "running")
			w.set("1", state)
			says("status", ended)
			w.write("down", "")
			says("status", ended)
			if err := os.Remove(w.dir + "/down"); err != nil {
				t.Fatal(err)
			}
			says("cancel", "has ended: "+ended)

			w.set("1", "PENDING") // It was requeued, and waits.
			says("status", "pending")
			start()
			says("status", "running")
			w.set("1", state)
			says("status", ended)

			start() // It was requeued, and no command checked it while it waited.
			says("status", "running")
			w.set("1", state)
			says("status", ended)

			w.set("1", "PENDING")
			says("cancel", "job 1: cancelled")
			says("status", "cancelled")
			if got := w.jobs()["1"]; got != "CANCELLED" {
				t.Errorf("the job is %s", got)
			}
			if err := os.Remove(w.dir + "/jobs/1"); err != nil {
				t.Fatal(err)
			}
			says("status", "cancelled")
			start() // SLURM knows nothing of what happened since, but the run has recorded a start.
			says("cancel", "job 1: cancelled")
		})
	}
}

// TestTwoJobs: an administrator requeues the job of a run that has been resumed since. Then status
// names both jobs, nothing more is queued, and cancel ends both.
func TestTwoJobs(t *testing.T) {
	w := newWorld(t, 2)
	says := func(want string, words ...string) {
		t.Helper()
		if out, _ := w.submit(0, words...); !strings.Contains(out, want) {
			t.Fatalf("submit %s does not say %q:\n%s", words, want, out)
		}
	}
	script := w.run.Script()
	begin := func(id string) {
		t.Helper()
		if _, err := rundir.AddStart(w.run, "job "+id+" now here"); err != nil {
			t.Fatal(err)
		}
		w.set(id, "RUNNING")
	}
	w.write("jobs/1", "PENDING "+script+"\n")
	w.write("last", "1\n")
	begin("1")
	w.set("1", "FAILED")
	says("failed", "status", w.run.Name())
	says("job 2", "resume", w.run.Name())
	begin("2")
	w.set("1", "PENDING") // scontrol requeue 1
	says("other jobs:    1 have not ended either: end all with submit cancel "+w.run.Name(), "status", w.run.Name())
	w.set("2", "FAILED")
	says("failed", "status", w.run.Name())
	says("has not ended: job 1 is pending; wait for it, or end it with submit cancel 1", "resume", w.run.Name())
	says("job 1, another job of the run: cancelled", "cancel", "1")
	if got := w.jobs(); got["1"] != "CANCELLED" || got["2"] != "FAILED" {
		t.Errorf("the jobs are %v", got)
	}
	says("has ended: failed", "cancel", w.run.Name())
	says("job 3", "resume", w.run.Name())
	w.set("1", "PENDING")
	says("job 1, another job of the run: cancelled", "cancel", w.run.Name())
	if got := w.jobs(); got["1"] != "CANCELLED" || got["3"] != "CANCELLED" {
		t.Errorf("the jobs are %v", got)
	}
}

// TestEarlierJobRuns: an administrator requeues the job of a run that has been resumed since, and
// that one starts first. The run is what it makes of it.
func TestEarlierJobRuns(t *testing.T) {
	w := newWorld(t, 4)
	says := func(want string, words ...string) {
		t.Helper()
		if out, _ := w.submit(0, words...); !strings.Contains(out, want) {
			t.Fatalf("submit %s does not say %q:\n%s", words, want, out)
		}
	}
	begin := func(id string) {
		t.Helper()
		if _, err := rundir.AddStart(w.run, "job "+id+" now here"); err != nil {
			t.Fatal(err)
		}
		w.set(id, "RUNNING")
	}
	w.write("jobs/1", "PENDING "+w.run.Script()+"\n")
	w.write("last", "1\n")
	begin("1")
	w.set("1", "FAILED")
	says("failed", "status", w.run.Name())
	says("job 2", "resume", w.run.Name())
	begin("1") // scontrol requeue 1
	says("job:           1\n", "status", w.run.Name())
	says("other jobs:    2", "status", "1")
	says("job 2 is another job of run", "logs", "2")
	w.set("2", "FAILED") // It has left job 1 alone.
	if err := errors.Join(rundir.MarkFinished(w.run, "train", 2), rundir.WriteExitStatus(w.run, "1", 0)); err != nil {
		t.Fatal(err)
	}
	w.set("1", "COMPLETED")
	says("state:         completed", "status", w.run.Name())
	w.set("1", "PENDING") // scontrol requeuehold 1
	says("other jobs:    1", "status", w.run.Name())
	says("job 1, another job of the run: cancelled", "cancel", w.run.Name())
	if got := w.jobs(); got["1"] != "CANCELLED" {
		t.Errorf("the jobs are %v", got)
	}
}

// TestInterruptedCancel: Ctrl-C ends a cancel that waits for SLURM, and its lock goes: elsewhere,
// the next command would wait for it.
func TestInterruptedCancel(t *testing.T) {
	w := newWorld(t, 3)
	w.write("jobs/1", "RUNNING "+w.run.Script()+"\n")
	if _, err := rundir.AddStart(w.run, "job 1 now here"); err != nil {
		t.Fatal(err)
	}
	w.write("bin/scontrol", "#!/bin/sh\nexec sleep 60\n")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cmd := w.command(ctx, "cancel", w.run.Name())
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	go func() {
		defer cancel()
		for range 3000 { // 30 s
			if _, err := os.Stat(w.run.RunLock()); err == nil {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		t.Error("it has taken no lock")
	}()
	if out, err := bounded.CombinedOutput(cmd); cmd.ProcessState.ExitCode() != 130 || !strings.Contains(string(out), "ended by a signal: interrupt") {
		t.Errorf("%v: %s", err, out)
	}
	if _, err := os.Stat(w.run.RunLock()); err == nil {
		t.Error("the lock is still there")
	}
}

// TestCancelledAtOnce: a cancel that is interrupted as it takes its lock says so, and releases it.
func TestCancelledAtOnce(t *testing.T) {
	w := newWorld(t, 5)
	w.write("jobs/1", "RUNNING "+w.run.Script()+"\n")
	t.Setenv("PATH", filepath.Join(w.dir, "bin")+":"+os.Getenv("PATH"))
	t.Setenv("WORLD", w.dir)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	a := newApp()
	var out, says strings.Builder
	a.Out, a.Err = &out, &says
	if code := execute(ctx, a, []string{"cancel", w.run.Path()}); code == 0 || out.Len() > 0 || !strings.Contains(says.String(), "context canceled") {
		t.Errorf("exit code %d, %q, %q", code, out.String(), says.String())
	}
	if _, err := os.Stat(w.run.RunLock()); err == nil {
		t.Error("the lock is still there")
	}
}

// TestUnreadLog: a log whose reader goes away, as in submit logs | head, ends without a word.
func TestUnreadLog(t *testing.T) {
	w := newWorld(t, 6)
	w.write("jobs/1", "RUNNING "+w.run.Script()+"\n")
	if err := errors.Join(os.MkdirAll(w.run.Logs(), 0o755), os.WriteFile(w.run.RankLog(0), []byte("line\nline\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	if _, err := rundir.AddStart(w.run, "job 1 now here"); err != nil {
		t.Fatal(err)
	}
	for words, want := range map[string]string{"": "", "--json": "", "-f": "job 1 continues; cancel it with: submit cancel 1\n"} {
		reader, writer, err := os.Pipe()
		if err == nil {
			err = reader.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		cmd := w.command(t.Context(), append([]string{"logs", w.run.Path()}, strings.Fields(words)...)...)
		var says strings.Builder
		cmd.Stdout, cmd.Stderr = writer, &says
		_ = bounded.Run(cmd) // Its exit code says more.
		if code := cmd.ProcessState.ExitCode(); code != 141 || says.String() != want {
			t.Errorf("logs %s: exit code %d, %q, want 141 and %q", words, code, says.String(), want)
		}
		_ = writer.Close()
	}
}

// TestStopsWaitingForSbatch: a second Ctrl-C ends a command that waits for sbatch, and it says that
// the job may be queued.
func TestStopsWaitingForSbatch(t *testing.T) {
	w := newWorld(t, 7)
	w.write("jobs/1", "FAILED "+w.run.Script()+"\n")
	if _, err := rundir.AddStart(w.run, "job 1 now here"); err != nil {
		t.Fatal(err)
	}
	w.write("bin/sbatch", "#!/bin/sh\ntouch \"$WORLD/asked\"; exec sleep 60\n")
	cmd := w.command(t.Context(), "resume", w.run.Name())
	go func() {
		for range 3000 { // 30 s
			if _, err := os.Stat(filepath.Join(w.dir, "asked")); err == nil {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		for range 2 {
			_ = cmd.Process.Signal(os.Interrupt) // Without it, the test takes a minute and fails.
			time.Sleep(300 * time.Millisecond)
		}
	}()
	if out, err := bounded.CombinedOutput(cmd); cmd.ProcessState.ExitCode() != 130 || !strings.Contains(string(out), "interrupt again to stop waiting") || !strings.Contains(string(out), "sbatch has not said whether SLURM has the job") {
		t.Errorf("%v: %s", err, out)
	}
}
