package main

import (
	"errors"
	"os"
	"strings"
	"testing"

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
			w.begin("1")
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
			w.begin("1")
			says("status", "running")
			w.set("1", state)
			says("status", ended)

			w.begin("1") // It was requeued, and no command checked it while it waited.
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
			w.begin("1") // SLURM knows nothing of what happened since, but the run has recorded a start.
			says("cancel", "job 1: cancelled")
		})
	}
}

// TestTwoJobs: an administrator requeues the job of a run that has been resumed since. Then status
// names both jobs, nothing more is queued, and cancel ends both.
func TestTwoJobs(t *testing.T) {
	w := newWorld(t, 2)
	script := w.run.Script()
	w.write("jobs/1", "PENDING "+script+"\n")
	w.write("last", "1\n")
	w.begin("1")
	w.set("1", "FAILED")
	w.says("failed", "status", w.run.Name())
	w.says("job 2", "resume", w.run.Name())
	w.begin("2")
	w.set("1", "PENDING") // scontrol requeue 1
	w.says("other jobs:    1 have not ended either: end all with submit cancel "+w.run.Name(), "status", w.run.Name())
	w.set("2", "FAILED")
	w.says("failed", "status", w.run.Name())
	w.says("has not ended: job 1 is pending; wait for it, or end it with submit cancel 1", "resume", w.run.Name())
	w.says("job 1, another job of the run: cancelled", "cancel", "1")
	if got := w.jobs(); got["1"] != "CANCELLED" || got["2"] != "FAILED" {
		t.Errorf("the jobs are %v", got)
	}
	w.says("has ended: failed", "cancel", w.run.Name())
	w.says("job 3", "resume", w.run.Name())
	w.set("1", "PENDING")
	w.says("job 1, another job of the run: cancelled", "cancel", w.run.Name())
	if got := w.jobs(); got["1"] != "CANCELLED" || got["3"] != "CANCELLED" {
		t.Errorf("the jobs are %v", got)
	}
}

// TestEarlierJobRuns: an administrator requeues the job of a run that has been resumed since, and
// that one starts first. The run is what it makes of it.
func TestEarlierJobRuns(t *testing.T) {
	w := newWorld(t, 4)
	w.write("jobs/1", "PENDING "+w.run.Script()+"\n")
	w.write("last", "1\n")
	w.begin("1")
	w.set("1", "FAILED")
	w.says("failed", "status", w.run.Name())
	w.says("job 2", "resume", w.run.Name())
	w.begin("1") // scontrol requeue 1
	w.says("job:           1\n", "status", w.run.Name())
	w.says("other jobs:    2", "status", "1")
	w.says("job 2 is another job of run", "logs", "2")
	w.set("2", "FAILED") // It has left job 1 alone.
	if err := errors.Join(rundir.MarkFinished(w.run, "train", 2), rundir.WriteExitStatus(w.run, "1", 0)); err != nil {
		t.Fatal(err)
	}
	w.set("1", "COMPLETED")
	w.says("state:         completed", "status", w.run.Name())
	w.set("1", "PENDING") // scontrol requeuehold 1
	w.says("other jobs:    1", "status", w.run.Name())
	w.says("job 1, another job of the run: cancelled", "cancel", w.run.Name())
	if got := w.jobs(); got["1"] != "CANCELLED" {
		t.Errorf("the jobs are %v", got)
	}
}

// TestEndedUnmarked: a job is cancelled after the ranks of its cell have recorded that they ended
// well, before it could mark the cell. The cell doesn't run again, unless a resumption since then
// has asked for it.
func TestEndedUnmarked(t *testing.T) {
	w := newWorld(t, 3)
	w.write("jobs/1", "PENDING "+w.run.Script()+"\n")
	w.write("last", "1\n")
	w.begin("1")
	ends := func(code int) {
		t.Helper()
		if err := (rundir.End{Code: code}).Write(w.run, 1, "train"); err != nil {
			t.Fatal(err)
		}
	}
	ends(1)
	w.set("1", "CANCELLED")
	w.says("job 2", "resume", w.run.Name())
	ends(0)
	w.set("2", "CANCELLED")
	w.says("job 3", "resume", w.run.Name())
	w.begin("3")
	w.set("3", "CANCELLED")
	w.says("job 4", "resume", w.run.Name())
	w.begin("4")
	w.set("4", "CANCELLED")
	if err := (rundir.End{Told: true}).Write(w.run, 3, "train"); err != nil {
		t.Fatal(err)
	}
	w.says("job 5", "resume", w.run.Name())
	if rundir.IsFinished(w.run, "train") {
		t.Error("a rank that was told to stop counts as one that ended well")
	}
	w.begin("5")
	w.set("5", "CANCELLED")
	if err := (rundir.End{}).Write(w.run, 4, "train"); err != nil {
		t.Fatal(err)
	}
	w.says("job 6", "resume", w.run.Name())
	if !rundir.IsFinished(w.run, "train") {
		t.Error("the cell is not marked")
	}
	w.begin("6")
	w.set("6", "COMPLETED")
	w.says("has nothing left to do", "resume", w.run.Name())
}
