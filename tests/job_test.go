package tests

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"gonbatch/internal/rundir"
	"gonbatch/tests/cluster"
)

// waits is a cell that waits until the notebook's folder has a file named release.
const waits = "%%\nfmt.Println(\"waits\")\nfor {\n\tif _, err := os.Stat(\"release\"); err == nil {\n\t\tbreak\n\t}\n\ttime.Sleep(50 * time.Millisecond)\n}\nfmt.Println(\"released\")"

// TestJobs checks that a run always finds its job on a real cluster, no matter who queued it or
// what happened to the command that did.
func TestJobs(t *testing.T) {
	t.Parallel()
	shared := cluster.Start(t)
	for _, tc := range []struct {
		name string
		test func(*testing.T, *cluster.Cluster)
		// alone marks a test that would disturb other jobs on its cluster.
		alone bool
	}{
		{"forgotten", forgotten, true},
		{"controller away", controllerAway, true},
		{"requeued", requeued, false},
		{"queued by hand", queuedByHand, false},
		{"queued twice by hand", queuedTwice, false},
		{"interrupted in sbatch", interruptedInSbatch, false},
		{"killed in sbatch", killedInSbatch, false},
		{"three resumes", threeResumes, false},
		{"resumed while it ends", resumedWhileItEnds, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := shared
			if tc.alone {
				c = cluster.Start(t, cluster.Nodes(1))
			}
			tc.test(t, c)
		})
	}
}

// queuedByHand checks that the job of a staged run is found by its script, while it waits and while
// it runs.
func queuedByHand(t *testing.T, c *cluster.Cluster) {
	u := newUser(t, c.Env()...)
	u.mustSubmit(t, "--no-submit", u.write(t, "hand.ipynb", waits))
	run := u.run(t)
	wantAll(t, u.mustSubmit(t, "status", run.Name()), "state:         staged, not queued")
	id := strings.TrimSpace(mustOutput(t, c, "sbatch", "--parsable", "--hold", run.Script()))
	wantAll(t, u.mustSubmit(t, "status"), id+" ", "pending: JobHeldUser")
	out, err := u.submit(t, "resume", run.Name())
	if err == nil {
		t.Errorf("it was resumed:\n%s", out)
	}
	wantAll(t, out, "has not ended: job "+id+" is pending")
	u.mustSubmit(t, "cancel", id)
	wantAll(t, u.mustSubmit(t, "status", run.Name()), "state:         cancelled")
	wantAll(t, read(t, run.Executed()), `"state": "cancelled"`)

	again := strings.TrimSpace(mustOutput(t, c, "sbatch", "--parsable", run.Script()))
	eventually(t, "it runs", func() bool { return strings.Contains(u.mustSubmit(t, "status", run.Name()), "state:         running") })
	wantAll(t, u.mustSubmit(t, "status", again), run.Name())
	u.release(t)
	if out, err := u.submit(t, "logs", "-f", run.Name()); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	wantAll(t, u.mustSubmit(t, "status", run.Name()), "state:         completed", again)
}

// queuedTwice queues the same script twice. The programs run once.
func queuedTwice(t *testing.T, c *cluster.Cluster) {
	u := newUser(t, c.Env()...)
	u.mustSubmit(t, "--no-submit", u.write(t, "twice.ipynb", waits))
	run := u.run(t)
	first := strings.TrimSpace(mustOutput(t, c, "sbatch", "--parsable", run.Script()))
	eventually(t, "it runs", func() bool { text, _ := os.ReadFile(run.RankLog(0)); return strings.Contains(string(text), "waits") })
	second := strings.TrimSpace(mustOutput(t, c, "sbatch", "--parsable", run.Script()))
	eventually(t, "the second gives way", func() bool {
		return strings.Contains(read(t, run.SchedulerLog()), "job "+first+" runs in this run directory: job "+second+" leaves it alone")
	})
	u.release(t)
	eventually(t, "it is completed", func() bool {
		return strings.Contains(u.mustSubmit(t, "status", run.Name()), "state:         completed")
	})
	if log := read(t, run.RankLog(0)); log != "waits\nreleased\n" {
		t.Errorf("log %q", log)
	}
}

// slowSbatch returns a PATH with an sbatch that queues the job long before it answers, and the file
// that it creates in between.
func slowSbatch(t *testing.T) (path, queued string) {
	t.Helper()
	dir := t.TempDir()
	real, err := exec.LookPath("sbatch")
	if err != nil {
		t.Fatal(err)
	}
	queued = filepath.Join(dir, "queued")
	text := fmt.Sprintf("#!/bin/bash\n[ \"$1\" != --test-only ] || exit 0\nid=$(%s \"$@\") || exit\ntouch %s\nfor ((i = 0; i < 40; i++)); do sleep 0.1; done\necho $id\necho Thank you for flying with us.\n", real, queued)
	if err := os.WriteFile(filepath.Join(dir, "sbatch"), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return "PATH=" + dir + ":" + os.Getenv("PATH"), queued
}

// inSbatch starts a submission. Once sbatch has queued the job, it signals the whole process group,
// as a terminal does.
func inSbatch(t *testing.T, u user, signal syscall.Signal, args ...string) (out string, code int) {
	t.Helper()
	program, err := submitBinary()
	if err != nil {
		t.Fatal(err)
	}
	path, queued := slowSbatch(t)
	var all strings.Builder
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = u.folder, append(append(os.Environ(), u.env...), path), &all, &all
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "sbatch has queued the job", func() bool { _, err := os.Stat(queued); return err == nil })
	if err := syscall.Kill(-cmd.Process.Pid, signal); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // The exit code is returned.
	return all.String(), cmd.ProcessState.ExitCode()
}

func interruptedInSbatch(t *testing.T, c *cluster.Cluster) {
	u := newUser(t, c.Env()...)
	out, code := inSbatch(t, u, syscall.SIGINT, "--directive=--hold", u.write(t, "slow.ipynb", waits))
	if code != 130 {
		t.Errorf("exit code %d", code)
	}
	id := job(t, out)
	wantAll(t, out, "waiting for sbatch", "the job is queued anyway; cancel it with: submit cancel "+id)
	wantAll(t, u.mustSubmit(t, "status", id), "pending: JobHeldUser")
	u.mustSubmit(t, "cancel", id)
}

func killedInSbatch(t *testing.T, c *cluster.Cluster) {
	u := newUser(t, c.Env()...)
	inSbatch(t, u, syscall.SIGKILL, "--directive=--hold", u.write(t, "slow.ipynb", waits))
	run := u.run(t)
	wantAll(t, u.mustSubmit(t, "status", run.Name()), "pending: JobHeldUser")
	if out, err := u.submit(t, "resume", run.Name()); err == nil {
		t.Errorf("it was resumed:\n%s", out)
	}
	u.mustSubmit(t, "cancel", run.Name())
	wantAll(t, u.mustSubmit(t, "status", run.Name()), "state:         cancelled")
}

// threeResumes checks that if several commands resume a run at once, only one does.
func threeResumes(t *testing.T, c *cluster.Cluster) {
	u := newUser(t, c.Env()...)
	name := u.write(t, "fails.ipynb", "%%\nif os.Getenv(\"GONBATCH_RESTARTS\") == \"0\" {\n\tos.Exit(3)\n}", waits)
	if out, err := u.submit(t, "--follow", name); err == nil {
		t.Fatalf("it did not fail:\n%s", out)
	}
	run := u.run(t)
	var resumed []string
	var mu sync.Mutex
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			out, err := u.submit(t, "resume", run.Path())
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				resumed = append(resumed, out)
			} else if !strings.Contains(out, "has not ended: job ") {
				t.Errorf("%s", out)
			}
		})
	}
	all.Wait()
	if len(resumed) != 1 {
		t.Errorf("%d commands have resumed the run, want 1:\n%s", len(resumed), strings.Join(resumed, "\n"))
	}
	if jobs := jobsOf(t, c, run); len(jobs) != 2 {
		t.Errorf("the run had the jobs %q, want two", jobs)
	}
	u.release(t)
	eventually(t, "it is completed", func() bool {
		return strings.Contains(u.mustSubmit(t, "status", run.Name()), "state:         completed")
	})
}

// jobsOf returns the IDs of a run's jobs that SLURM knows.
func jobsOf(t *testing.T, c *cluster.Cluster, run rundir.Dir) (ids []string) {
	t.Helper()
	for _, text := range strings.Split(mustOutput(t, c, "scontrol", "show", "job"), "\n\n") {
		if strings.Contains(text, "Command="+run.Script()+"\n") {
			ids = append(ids, regexp.MustCompile(`^\s*JobId=([0-9]+)`).FindStringSubmatch(text)[1])
		}
	}
	return ids
}

// resumedWhileItEnds checks that the programs of a cancelled job have ended before those of the
// next job start.
func resumedWhileItEnds(t *testing.T, c *cluster.Cluster) {
	u := newUser(t, c.Env()...)
	name := u.write(t, "deaf.ipynb", `%%
read := func() string { text, _ := os.ReadFile("beats"); return string(text) }
if os.Getenv("GONBATCH_RESTARTS") != "0" {
	before := read()
	time.Sleep(time.Second)
	fmt.Println("alone:", before == read())
	return
}
signal.Ignore(syscall.SIGTERM, syscall.SIGUSR1)
fmt.Println("deaf")
for i := 0; ; i++ {
	os.WriteFile("beats", []byte(strconv.Itoa(i)), 0o644)
	time.Sleep(20 * time.Millisecond)
}`)
	id := job(t, u.mustSubmit(t, name))
	run := u.run(t)
	eventually(t, "it runs", func() bool { text, _ := os.ReadFile(run.RankLog(0)); return strings.Contains(string(text), "deaf") })
	u.mustSubmit(t, "cancel", id)
	if out, err := u.submit(t, "resume", "--follow", run.Path()); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if log := read(t, run.RankLog(0)); !strings.Contains(log, "alone: true\n") {
		t.Errorf("log %q\n%s", log, read(t, run.SchedulerLog()))
	}
}

// release lets the waiting program continue.
func (u user) release(t *testing.T) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(u.folder, "release"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
}

func mustOutput(t *testing.T, c *cluster.Cluster, command ...string) string {
	t.Helper()
	out, err := c.Run(command[0], command[1:]...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// lockedBuilder collects the output of a running command.
type lockedBuilder struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *lockedBuilder) Write(text []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(text)
}

func (b *lockedBuilder) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
