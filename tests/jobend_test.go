package tests

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"gonbatch/internal/rundir"
	"gonbatch/tests/cluster"
)

// controllerAway checks that the log is shown while SLURM does not answer, and that the job's end
// is noticed once it answers again.
func controllerAway(t *testing.T, c *cluster.Cluster) {
	u := newUser(t, c.Env()...)
	program, err := submitBinary()
	if err != nil {
		t.Fatal(err)
	}
	var out lockedBuilder
	cmd := exec.Command(program, "--follow", u.write(t, "away.ipynb", waits))
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = u.folder, append(os.Environ(), u.env...), &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it runs", func() bool { return strings.Contains(out.String(), "waits\n") })
	if err := c.StopController(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "submit says that SLURM does not answer", func() bool { return strings.Contains(out.String(), "asking again until the scheduler answers") })
	u.release(t)
	eventually(t, "the log is shown anyway", func() bool { return strings.Contains(out.String(), "released\n") })
	if err := c.StartController(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, out.String())
	}
	if n := strings.Count(out.String(), "asking again until the scheduler answers"); n != 1 {
		t.Errorf("submit said %d times that SLURM does not answer, want once:\n%s", n, out.String())
	}
}

// forgotten checks that the files of a job show how it ended after SLURM has forgotten the job and
// reused its ID.
func forgotten(t *testing.T, c *cluster.Cluster) {
	u, long := newUser(t, c.Env()...), newUser(t, c.Env()...)
	// The time limit ends this job, after about a minute and a half.
	limit := job(t, long.mustSubmit(t, "--time", "1", "--max-restarts", "0", long.write(t, "limit.ipynb", waits)))
	id := job(t, u.mustSubmit(t, u.write(t, "cancelled.ipynb", waits)))
	run := u.run(t)
	eventually(t, "it runs", func() bool { text, _ := os.ReadFile(run.RankLog(0)); return strings.Contains(string(text), "waits") })
	mustRun(t, c, "scancel", id)
	gone(t, c, id)
	gone(t, c, limit)
	if err := c.StopController(); err != nil {
		t.Fatal(err)
	}
	if err := c.ForgetJobs(); err != nil {
		t.Fatal(err)
	}
	wantAll(t, u.mustSubmit(t, "status", id), "state:         cancelled", run.SchedulerLog())
	wantAll(t, long.mustSubmit(t, "status", limit), "state:         timed out: TimeLimit")
	if m, err := rundir.ReadManifest(run); err != nil || m.Ended != nil {
		t.Errorf("an inferred end was recorded: %+v, %v", m, err)
	}
	// Other jobs get the IDs.
	for {
		stranger := strings.TrimSpace(mustOutput(t, c, "sbatch", "--parsable", "--hold", "--output=/dev/null", "--wrap", "sleep 600"))
		if stranger == id {
			break
		}
	}
	wantAll(t, u.mustSubmit(t, "status", id), "state:         cancelled")
	wantAll(t, u.mustSubmit(t, "cancel", id), "has ended: cancelled")
	wantAll(t, mustOutput(t, c, "squeue", "--noheader", "--jobs", id, "--format=%T"), "PENDING")
	u.release(t)
	if out, err := u.submit(t, "resume", "--follow", run.Path()); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// requeued checks that a job that has ended and that SLURM then requeues is pending, then running,
// and can be cancelled.
func requeued(t *testing.T, c *cluster.Cluster) {
	u := newUser(t, c.Env()...)
	id := job(t, u.mustSubmit(t, u.write(t, "requeued.ipynb", waits)))
	says := func(state string) {
		t.Helper()
		eventually(t, "it is "+state, func() bool { return strings.Contains(u.mustSubmit(t, "status", id), "state:         "+state) })
	}
	says("running")
	mustRun(t, c, "scancel", id)
	gone(t, c, id)
	says("cancelled")
	if m, err := rundir.ReadManifest(u.run(t)); err != nil || m.Ended == nil {
		t.Fatalf("the end was not recorded: %+v, %v", m, err)
	}
	mustRun(t, c, "scontrol", "requeuehold", id)
	says("pending")
	mustRun(t, c, "scontrol", "release", id)
	// slurmd refuses to start a job in the same second in which it ended: "Job credential revoked".
	mustRun(t, c, "scontrol", "update", "jobid="+id, "starttime=now+3")
	says("running")
	wantAll(t, u.mustSubmit(t, "cancel", id), "job "+id+": cancelled")
	gone(t, c, id)
	says("cancelled")
}

// gone waits up to 10 minutes until a job has ended.
func gone(t *testing.T, c *cluster.Cluster, id string) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Minute); ; time.Sleep(time.Second) {
		if out, err := c.Run("squeue", "--noheader", "--jobs", id); err == nil && strings.TrimSpace(out) == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("job %s does not end", id)
		}
	}
}
