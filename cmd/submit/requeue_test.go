package main

import (
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
