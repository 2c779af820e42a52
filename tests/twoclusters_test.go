package tests

import (
	"strings"
	"testing"

	"gonbatch/internal/rundir"
	"gonbatch/tests/cluster"
)

// TestTwoClusters has two clusters with one home, possibly of the same name. The cluster that does
// not have the job neither calls it lost nor touches its own job with the same ID.
func TestTwoClusters(t *testing.T) {
	t.Parallel()
	east := cluster.Start(t, cluster.Nodes(1), cluster.Name("east"))
	for _, tc := range []struct{ name, says string }{{"west", "is on the cluster east, and SLURM's commands on this machine ask the cluster west"}, {"east", "lost"}} {
		t.Run("the other is "+tc.name, func(t *testing.T) {
			t.Parallel()
			other := cluster.Start(t, cluster.Nodes(1), cluster.Name(tc.name))
			here := newUser(t, east.Env()...)
			there := user{folder: here.folder, env: other.Env()}
			id := job(t, here.mustSubmit(t, here.write(t, "far.ipynb", waits)))
			run := here.run(t)
			stranger := ""
			for stranger != id {
				stranger = strings.TrimSpace(mustOutput(t, other, "sbatch", "--parsable", "--hold", "--output=/dev/null", "--wrap", "sleep 600"))
			}
			for _, command := range [][]string{{"status"}, {"status", id}, {"cancel", id}, {"logs", "-f", id}} {
				out, _ := there.submit(t, command...) // Some fail; others only print.
				wantAll(t, out, tc.says)
			}
			if tc.name == "west" {
				if out, err := there.submit(t, "resume", id); err == nil || !strings.Contains(out, tc.says) {
					t.Errorf("submit resume: %v\n%s", err, out)
				}
			}
			wantAll(t, mustOutput(t, other, "squeue", "--noheader", "--format=%T", "--jobs", stranger), "PENDING")
			if m, err := rundir.ReadManifest(run); err != nil || m.Ended != nil || m.JobID != id || m.Cluster != "east" {
				t.Errorf("%+v, %v", m, err)
			}
			eventually(t, "it runs", func() bool { return strings.Contains(here.mustSubmit(t, "status", id), "state:         running") })
			here.release(t)
			eventually(t, "it is completed", func() bool { return strings.Contains(here.mustSubmit(t, "status", id), "state:         completed") })
			wantAll(t, there.mustSubmit(t, "status", id), "state:         completed")
		})
	}
}
