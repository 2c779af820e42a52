package tests

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gonbatch/internal/rundir"
	"gonbatch/tests/cluster"
)

// TestQueue: sbatch's options reach SLURM, a job that can never run is refused before anything is
// compiled, submit nodes shows what is free, and jobs in the queue can be changed.
func TestQueue(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t)
	u := newUser(t, c.Env()...)
	name := u.write(t, "short.ipynb", "%%\nfmt.Println(\"ran\")")
	show := func(id string) string { return mustOutput(t, c, "scontrol", "show", "job", id) }

	first := job(t, u.mustSubmit(t, "-J", "first", "-N", "2", "-n", "4", "-t", "5m", "-x", "n1", "-b", "now+1hour", "--exclusive", "--mail-type", "end,fail", "--hint", "nomultithread", name))
	wantAll(t, show(first), "JobName=first", "NumNodes=2", "TimeLimit=00:05:00", "ExcNodeList=n1", "OverSubscribe=NO", "Reason=BeginTime")
	out := u.mustSubmit(t, "-p", "high", "-d", "afterok:"+first, "-w", "n3", "--mem-per-cpu", "0.5g", name)
	second := job(t, out)
	wantAll(t, show(second), "Partition=high", "Dependency=afterok:"+first, "ReqNodeList=n3", "MinMemoryCPU=512M")
	wantAll(t, u.mustSubmit(t, "nodes"), "PARTITION", "main*", "high", "01:00:00", "your jobs: 2 pending")

	before := u.mustSubmit(t, "status")
	for want, args := range map[string][]string{
		"--nodes=9: a job gets at most 3 nodes in partition main, and no other partition can run the job either: ask for less": {"-N", "9"},
		"--mem=900G: a node has at most":                       {"--mem", "900G"},
		"--partition=nope: the cluster has main and high":      {"-p", "nope"},
		"--time=5:00:00: a job gets at most 01:00:00":          {"-p", "main", "-t", "5h"},
		"the job can't be queued: Invalid node name specified": {"-w", "n77"},
	} {
		out, err := u.submit(t, append(args, name)...)
		if err == nil || !strings.Contains(out, want) {
			t.Errorf("%q: %v\n%s", args, err, out)
		}
	}
	if after := u.mustSubmit(t, "status"); after != before {
		t.Errorf("the refused jobs left runs: %s", after)
	}
	wantAll(t, u.mustSubmit(t, "update", second, "-t", "10m", "-p", "main", "-x", "n2"), "job "+second, "updated: exclude, partition, time")
	wantAll(t, show(second), "TimeLimit=00:10:00", "Partition=main", "ExcNodeList=n2")
	wantAll(t, u.mustSubmit(t, "hold", first, second), "job "+first, "job "+second, ": held")
	wantAll(t, show(second), "Priority=0")
	wantAll(t, u.mustSubmit(t, "release", second), ": released")
	later := job(t, u.mustSubmit(t, "--after", first, "--after-any", second, "-J", "later", name))
	wantAll(t, show(later), "Dependency=afterok:"+first, "afterany:"+second, "KillOInInvalidDependent=Yes")
	if out, err := u.submit(t, "cancel", first, "nothing", second); err == nil || !strings.Contains(out, `no run "nothing"`) || strings.Count(out, ": cancelled") != 2 {
		t.Errorf("one of three runs doesn't exist: %v\n%s", err, out)
	}
	if out, err := u.submit(t, "hold", first); err == nil || !strings.Contains(out, "has ended: cancelled; start it again with: submit resume "+first) {
		t.Errorf("hold of an ended job: %v\n%s", err, out)
	}
	eventually(t, "the job that waits for a cancelled one is removed", func() bool {
		return strings.Contains(u.mustSubmit(t, "status", later), "cancelled")
	})
	// What was changed in the queue stays in a resumed run, except what was about that start.
	out = u.mustSubmit(t, "resume", second)
	wantAll(t, out, "--dependency=afterok:"+first+" was for the job before")
	third := job(t, out)
	wantAll(t, show(third), "TimeLimit=00:10:00", "Partition=main", "ExcNodeList=n2", "Dependency=(null)")
	u.mustSubmit(t, "cancel", third)
	out = u.mustSubmit(t, "-F", "--mem", "1500M", "-c", "4", "--notify", "cat >> events", name)
	wantAll(t, read(t, filepath.Join(u.folder, "events")), `{"event":"started",`, `{"event":"completed",`, `"job":"`+job(t, out)+`"`)
	wantAll(t, out, "starts:        now, on n", "ran", "used: ", " of 1500M of memory, 0.", " of 4 CPUs", "next time:     --mem ", " --cpus-per-task 1")
	sweep(t, u)
	limitedSweep(t, c, newUser(t, c.Env()...))
	again := job(t, u.mustSubmit(t, "rerun", "--as-measured", "-b", "now+1hour", job(t, out)))
	wantAll(t, show(again), "CPUs/Task=1", "TimeLimit=00:10:00")
	behind := job(t, u.mustSubmit(t, "rerun", "--after", again, job(t, out)))
	wantAll(t, show(behind), "Dependency=afterok:"+again)
	u.mustSubmit(t, "cancel", again, behind)
}

// sweepName is the name in the output of a sweep.
var sweepName = regexp.MustCompile(`runs of the sweep (\S+)`)

// sweep: with --at-once, a job waits for the end of an earlier one, and the sweep is followed to
// its end; what has failed runs again.
func sweep(t *testing.T, u user) {
	t.Helper()
	name := u.write(t, "points.ipynb", `var k = flag.Int("k", 0, "")`, "%%\nif _, err := os.Stat(\"fixed\"); *k == 3 && err != nil {\n\tos.Exit(4)\n}\nfmt.Println(\"k is\", *k)")
	out, err := u.submit(t, "-F", "--sweep", "k=1..5", "--at-once", "2", name)
	found := sweepName.FindStringSubmatch(out)
	if err == nil || found == nil {
		t.Fatalf("%v\n%s", err, out)
	}
	wantAll(t, out, ": k=3: failed", ": k=5: completed", "1 of 5 runs of the sweep did not complete: submit resume "+found[1])
	for k, run := range regexp.MustCompile(`(?m)^\d+  (points-\S+)  k=\d$`).FindAllStringSubmatch(out, -1) {
		wantAll(t, read(t, rundir.At(filepath.Join(u.folder, "runs", run[1])).Script()), "#SBATCH --dependency=singleton\n", fmt.Sprintf("#SBATCH --job-name=%s.%d\n", found[1], k%2+1))
	}
	if err := os.WriteFile(filepath.Join(u.folder, "fixed"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	u.mustSubmit(t, "resume", found[1])
	eventually(t, "all runs of the sweep have completed", func() bool {
		return strings.Count(u.mustSubmit(t, "list", "--sweep", found[1]), "completed") == 5
	})
	wantAll(t, u.mustSubmit(t, "compare", found[1]), "-k", "completed")
	out = u.mustSubmit(t, "--sweep", "k=1..40", "-b", "now+1hour", name)
	all := sweepName.FindStringSubmatch(out)[1]
	later := job(t, u.mustSubmit(t, "--after-any", all, name))
	wantAll(t, u.mustSubmit(t, "status", later), "pending: Dependency")
	if out := u.mustSubmit(t, "cancel", all); strings.Count(out, ": cancelled") != 40 {
		t.Errorf("%s", out)
	}
	u.mustSubmit(t, "cancel", later)
}

// sbatchOfFew is sbatch on a cluster that lets a user have two jobs in the queue: the answer is
// that of SLURM 22.05 with MaxSubmitJobs=2, which needs accounting.
const sbatchOfFew = `#!/bin/sh
if [ "$1" != --test-only ] && [ "$(squeue --me --noheader --states=pending,running,completing | wc -l)" -ge 2 ]; then
	echo "sbatch: error: AssocMaxSubmitJobLimit" >&2
	echo "sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)" >&2
	exit 1
fi
exec SBATCH "$@"
`

// limitedSweep: where the cluster takes only two jobs of a user, the other runs of a sweep are
// staged, and are queued as soon as it takes them. The runs share one program.
func limitedSweep(t *testing.T, c *cluster.Cluster, u user) {
	t.Helper()
	sbatch, err := exec.LookPath("sbatch")
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "sbatch"), []byte(strings.ReplaceAll(sbatchOfFew, "SBATCH", sbatch)), 0o700); err != nil {
		t.Fatal(err)
	}
	u.env = append(u.env, "PATH="+bin+":"+os.Getenv("PATH"))
	name := u.writeTagged(t, "few.ipynb", taggedCell{"var rate = 0.5", "parameters"}, taggedCell{"%%\ntime.Sleep(time.Second)\nfmt.Println(\"rate is\", rate)", ""})
	out := u.mustSubmit(t, "--sweep", "rate=1,2,3,4,5,6,7", "--at-once", "1", name)
	wantAll(t, out, "5 runs staged, not queued: the cluster takes no more jobs of yours before others have ended (AssocMaxSubmitJobLimit)", "submit resume -F few-sweep-")
	all := sweepName.FindStringSubmatch(out)[1]
	staged := regexp.MustCompile(`(?m)^-  +(few-\S+)  rate=7$`).FindStringSubmatch(out)
	wantAll(t, u.mustSubmit(t, "cancel", staged[1]), ": cancelled")
	if out, err := u.submit(t, "resume", all); err == nil || !strings.Contains(out, "add -F to queue the others as soon as it takes them") {
		t.Errorf("%v\n%s", err, out)
	}
	other := make(chan string)
	go func() {
		out, err := u.submit(t, "resume", "-F", all)
		other <- fmt.Sprintln(err, out)
	}()
	wantAll(t, u.mustSubmit(t, "resume", "-F", all), "rate=7: completed", "rate=6: completed")
	if out := <-other; !strings.HasPrefix(out, "<nil> ") {
		t.Errorf("another command that follows the sweep: %s", out)
	}
	programs := map[string]bool{}
	runs, err := rundir.List(filepath.Join(u.folder, "runs"))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range runs {
		wantAll(t, read(t, r.RankLog(0)), "rate is ")
		programs[read(t, r.Program("cell-2"))] = true
	}
	if len(programs) != 1 {
		t.Errorf("the runs have %d programs", len(programs))
	}
	// A run that is queued later waits for what the user has asked for.
	first := job(t, u.mustSubmit(t, "-b", "now+1hour", name))
	out = u.mustSubmit(t, "--sweep", "rate=8,9", "--at-once", "1", "--after", first, name)
	late := regexp.MustCompile(`(?m)^-  +(few-\S+)  rate=9$`).FindStringSubmatch(out)
	u.mustSubmit(t, "cancel", regexp.MustCompile(`(?m)^(\d+)  +few-\S+  rate=8$`).FindStringSubmatch(out)[1])
	wantAll(t, mustOutput(t, c, "scontrol", "show", "job", job(t, u.mustSubmit(t, "resume", late[1]))), "Dependency=afterok:"+first)
	u.mustSubmit(t, "cancel", first, late[1])
	// The sweep's name also cancels the runs that another command is about to queue again.
	out = u.mustSubmit(t, "--sweep", "rate=10,11", "-b", "now+1hour", name)
	all = sweepName.FindStringSubmatch(out)[1]
	u.mustSubmit(t, "cancel", all)
	before := []string{job(t, u.mustSubmit(t, "-b", "now+1hour", name)), job(t, u.mustSubmit(t, "-b", "now+1hour", name))}
	go func() {
		out, err := u.submit(t, "resume", "-F", all)
		other <- fmt.Sprintln(err, out)
	}()
	eventually(t, "the runs are staged", func() bool { return strings.Count(u.mustSubmit(t, "list", "--sweep", all), "cancelled") == 0 })
	u.mustSubmit(t, append([]string{"cancel", all}, before...)...)
	if out := <-other; !strings.Contains(out, "2 of 2 runs of the sweep did not complete") {
		t.Errorf("a cancelled sweep goes on: %s", out)
	}
}
