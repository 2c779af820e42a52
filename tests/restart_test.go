package tests

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gonbatch/distributed/ranktest"
	"gonbatch/internal/rundir"
	"gonbatch/internal/tier"
	"gonbatch/tests/cluster"
)

// training is a notebook that saves and stops when it is told to, and that ends with the same
// result however often that happens. In its first start it prints "holding" in the middle of its
// work and waits until it is told to stop, or killed.
type training struct {
	name  string
	cells []string
	// args are the submit options that it needs on two nodes.
	args []string
	// final returns the result of the training, as exactly as possible.
	final func(t *testing.T, run rundir.Dir) string
	// same compares two results; nil if they must be equal.
	same func(got, want string) bool
}

// isSame reports whether two results are the same.
func (training training) isSame(got, want string) bool {
	if training.same == nil {
		return got == want
	}
	return training.same(got, want)
}

// counting is plain Go: each of two ranks hashes the numbers of its steps, and keeps the hash in a
// file.
var counting = training{
	name: "counting",
	args: []string{"--mpi", "none"},
	cells: []string{
		`!echo prepared; sleep 0.2`,
		`var hold = flag.Bool("hold", true, "wait in the middle of the first start")

type state struct{ Step, Hash uint64 }

func path(name string) string {
	return filepath.Join(os.Getenv("GONBATCH_RUN_DIR"), "checkpoints", name+"-"+os.Getenv("SLURM_PROCID"))
}

func (s state) write(name string) {
	text, err := json.Marshal(s)
	if err == nil {
		err = os.WriteFile(path(name+".new"), text, 0o644)
	}
	if err == nil {
		err = os.Rename(path(name+".new"), path(name))
	}
	if err != nil {
		panic(err)
	}
}`,
		`%%
told := make(chan os.Signal, 1)
signal.Notify(told, syscall.SIGUSR1, syscall.SIGTERM)
var s state
if text, err := os.ReadFile(path("state")); err == nil {
	if err := json.Unmarshal(text, &s); err != nil {
		panic(err)
	}
}
fmt.Printf("start %s at step %d\n", os.Getenv("GONBATCH_RESTARTS"), s.Step)
for s.Step < 60 {
	var stop bool
	if *hold && s.Step == 25 && os.Getenv("GONBATCH_RESTARTS") == "0" {
		fmt.Println("holding")
		<-told
		stop = true
	}
	select {
	case <-told:
		stop = true
	case <-time.After(20 * time.Millisecond):
	}
	if stop {
		s.write("state")
		fmt.Println("saved step", s.Step)
		code, _ := strconv.Atoi(os.Getenv("GONBATCH_REQUEUE"))
		os.Exit(code)
	}
	s.Step++
	s.Hash = (s.Hash ^ s.Step) * 1099511628211
	if s.Step%10 == 0 {
		s.write("state")
	}
}
s.write("final")
fmt.Println("final", s.Hash)`,
	},
	final: func(t *testing.T, run rundir.Dir) string {
		t.Helper()
		var all string
		for rank := range 2 {
			all += read(t, filepath.Join(run.Checkpoints(), fmt.Sprintf("final-%d", rank)))
		}
		return all
	},
}

// scenario is something that happens to a job in the middle of its training.
type scenario struct {
	name     string
	training *training
	args     []string
	// disturb is called while the training holds.
	disturb func(t *testing.T, c *cluster.Cluster, j *trainee)
	// says are strings that submit's output must contain in the end. state is how the job ends; ""
	// means success.
	says  []string
	state string
	// restarts is the number of starts after the first. A job that does not succeed is resumed once
	// more.
	restarts int
	// resumable means that a run that did not succeed is resumed, with the options in resume.
	// elsewhere means that these change the number of ranks, so that the result differs.
	resumable, elsewhere bool
	resume               []string
	// alone marks a scenario that would disturb other jobs on its cluster.
	alone bool
}

// scenarios are sorted: the longest of each tier come first.
var scenarios = []scenario{
	{name: "time limit", training: &withTrainer, args: []string{"--time", "1", "--signal-lead", "30s"}, disturb: raiseLimit, restarts: 1},
	{name: "kill -9 of a node's slurmd", training: &withTrainer, disturb: killDaemon, restarts: 1, alone: true},
	{name: "preemption", training: &withTrainer, disturb: preempt, restarts: 1, alone: true},
	{name: "preemption with a grace time", training: &counting, disturb: preemptGracefully, restarts: 1, alone: true},
	{name: "scontrol requeue", training: &withTrainer, disturb: requeue, restarts: 1},
	{name: "told to stop", training: &counting, disturb: tell, restarts: 1},
	{name: "requeue forbidden", training: &counting, disturb: forbiddenRequeue, state: "stopped", resumable: true, says: []string{"stopped", "resume it with: submit resume "}},
	{name: "kill -9 of a rank", training: &withTrainer, disturb: killRank, restarts: 1},
	{name: "kill -9 of a rank, restarts turned off", training: &withTrainer, args: []string{"--max-restarts", "0"}, disturb: killRank, state: "failed", resumable: true,
		says: []string{"failed", "exit code 137", "rank 1 on n"}},
	{name: "go on with one rank", training: &withTrainer, args: []string{"--max-restarts", "0"}, disturb: tell, state: "stopped", resumable: true,
		resume: []string{"--nodes", "1"}, elsewhere: true},
	{name: "scancel", training: &counting, disturb: scancel, state: "cancelled", resumable: true, says: []string{"cancelled"}},
	// The second tier:
	{name: "restarts turned off", training: &counting, args: []string{"--max-restarts", "0"}, disturb: tell, state: "stopped", resumable: true,
		says: []string{"stopped", "resume it with: submit resume "}},
	{name: "kill -9 of a rank with zero1", training: &dividing, disturb: killRank, restarts: 1},
	{name: "go on with three ranks and zero1", training: &dividing, args: []string{"--max-restarts", "0"}, disturb: tell, state: "stopped", resumable: true,
		resume: []string{"--nodes", "3"}},
}

// TestRestarts checks that whatever happens to a job on a real cluster, its training ends with the
// result of an undisturbed one, by itself or after submit resume. The scheduler treats all programs
// alike, so some scenarios need no real training.
func TestRestarts(t *testing.T) {
	t.Parallel()
	shared := cluster.Start(t)
	want := map[*training]string{&counting: undisturbed(t, shared, counting), &withTrainer: undisturbed(t, shared, withTrainer)}
	if !testing.Short() {
		want[&dividing] = undisturbed(t, shared, dividing, "--nodes", "1")
	}
	for _, s := range tier.Fewer(scenarios, len(scenarios)-3) {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			c := shared
			if s.alone {
				c = cluster.Start(t)
			}
			s.play(t, c, want[s.training])
		})
	}
}

// undisturbed returns the result of a training run that nothing disturbs, with further options of
// submit.
func undisturbed(t *testing.T, c *cluster.Cluster, training training, options ...string) string {
	t.Helper()
	j := newTrainee(t, c, training)
	if out, err := j.submit(t, training.command(options, j.notebook, "--", "-hold=false")...); err != nil {
		t.Fatalf("%s, undisturbed: %v\n%s", training.name, err, out)
	}
	return training.final(t, j.run(t))
}

// command returns submit's command line for two nodes.
func (training training) command(options []string, notebook ...string) []string {
	return slices.Concat([]string{"--nodes", "2", "--follow"}, training.args, options, notebook)
}

// trainee is a user and the training that they submit.
type trainee struct {
	user
	notebook string
	cluster  *cluster.Cluster
}

func newTrainee(t *testing.T, c *cluster.Cluster, training training) *trainee {
	t.Helper()
	j := &trainee{user: newUser(t, append(c.Env(), ranktest.QuickCompilation)...), cluster: c}
	j.notebook = j.write(t, "training.ipynb", training.cells...)
	return j
}

// id returns the job's ID.
func (j *trainee) id(t *testing.T) string {
	t.Helper()
	m, err := rundir.ReadManifest(j.run(t))
	if err != nil {
		t.Fatal(err)
	}
	return m.JobID
}

// play submits the training, disturbs it, and checks how it ends.
func (s scenario) play(t *testing.T, c *cluster.Cluster, want string) {
	training := *s.training
	j := newTrainee(t, c, training)
	type end struct {
		out string
		err error
	}
	ended := make(chan end, 1)
	go func() {
		out, err := j.submit(t, training.command(s.args, j.notebook)...)
		ended <- end{out, err}
	}()
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(j.logs())
		}
	})
	// On a busy machine the time limit may be near before the ranks hold.
	eventually(t, "both ranks hold", func() bool { return j.holds() || j.started() > 1 || len(ended) > 0 })
	if len(ended) == 0 {
		s.disturb(t, c, j)
	}
	e := <-ended
	if (e.err == nil) != (s.state == "") {
		t.Fatalf("submit --follow: %v, want it to end %q\n%s\n%s", e.err, s.state, e.out, j.scheduler(t))
	}
	wantAll(t, e.out, s.says...)
	run := j.run(t)
	if s.state != "" {
		wantAll(t, j.mustSubmit(t, "status", run.Name()), "state:         "+s.state)
		if starts, err := rundir.CountStarts(run); starts != 1 || err != nil {
			t.Errorf("%d starts, %v: a job that ended as %s was started again\n%s", starts, err, s.state, j.scheduler(t))
		}
	}
	restarts := s.restarts
	if s.resumable {
		restarts++
		if out, err := j.submit(t, slices.Concat([]string{"resume", "--follow"}, s.resume, []string{run.Path()})...); err != nil {
			t.Fatalf("submit resume: %v\n%s\n%s", err, out, j.scheduler(t))
		}
	}
	if got := training.final(t, run); !training.isSame(got, want) && !s.elsewhere {
		t.Errorf("the result is %s, want that of an undisturbed training: %s\n%s", got, want, j.scheduler(t))
	}
	if starts, err := rundir.CountStarts(run); starts != restarts+1 || err != nil {
		t.Errorf("%d starts, %v; want %d\n%s", starts, err, restarts+1, j.scheduler(t))
	}
	log := read(t, run.RankLog(0))
	if n := strings.Count(log, "prepared\n"); n != 1 {
		t.Errorf("the shell command of the first cell ran %d times, want once:\n%s", n, log)
	}
	wantAll(t, j.mustSubmit(t, "status", run.Name()), "state:         completed", fmt.Sprintf("restarts:      %d", restarts))
}

// holds reports whether both ranks are waiting in the middle of their work.
func (j *trainee) holds() bool {
	for rank := range 2 {
		logs, err := filepath.Glob(filepath.Join(j.folder, "runs", "*", "logs", fmt.Sprintf("rank-%d.log", rank)))
		if err != nil || len(logs) != 1 {
			return false
		}
		text, err := os.ReadFile(logs[0])
		if err != nil || !strings.Contains(string(text), "holding\n") {
			return false
		}
	}
	return true
}

// started returns how often the job was started.
func (j *trainee) started() int {
	runs, err := rundir.List(filepath.Join(j.folder, "runs"))
	if err != nil || len(runs) != 1 {
		return 0
	}
	starts, _ := rundir.CountStarts(runs[0]) // Zero if it was never started.
	return starts
}

// scheduler returns the batch script's own log.
func (j *trainee) scheduler(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(j.run(t).SchedulerLog())
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// logs returns all logs of all runs.
func (j *trainee) logs() string {
	var all strings.Builder
	files, _ := filepath.Glob(filepath.Join(j.folder, "runs", "*", "logs", "*"))
	for _, file := range files {
		text, err := os.ReadFile(file)
		fmt.Fprintf(&all, "%s: %v\n%s\n", file, err, text)
	}
	return all.String()
}

func mustRun(t *testing.T, c *cluster.Cluster, command ...string) {
	t.Helper()
	if _, err := c.Run(command[0], command[1:]...); err != nil {
		t.Error(err)
	}
}

// raiseLimit waits until the time limit has restarted the job, then raises the limit: on a busy
// machine the next start does not finish within a minute either.
func raiseLimit(t *testing.T, c *cluster.Cluster, j *trainee) {
	eventually(t, "it is started again", func() bool { return j.started() > 1 })
	_, _ = c.Run("scontrol", "update", "jobid="+j.id(t), "timelimit=30") // On an idle machine the job may have ended already.
}

func requeue(t *testing.T, c *cluster.Cluster, j *trainee) {
	mustRun(t, c, "scontrol", "requeue", j.id(t))
}

func scancel(t *testing.T, c *cluster.Cluster, j *trainee) { mustRun(t, c, "scancel", j.id(t)) }

// tell signals the job as SLURM does shortly before the time limit.
func tell(t *testing.T, c *cluster.Cluster, j *trainee) {
	mustRun(t, c, "scancel", "--batch", "--signal=USR1", j.id(t))
}

func forbiddenRequeue(t *testing.T, c *cluster.Cluster, j *trainee) {
	mustRun(t, c, "scontrol", "update", "jobid="+j.id(t), "requeue=0")
	tell(t, c, j)
}

// killRank kills the program of rank 1, on whichever node it runs.
func killRank(t *testing.T, c *cluster.Cluster, j *trainee) {
	for _, node := range c.Nodes {
		if _, err := c.On(node, "bash", "-c", `pid=$(pgrep -f "^$0") && tr '\0' '\n' < /proc/$pid/environ | grep -qx SLURM_PROCID=1 && kill -9 $pid`,
			j.run(t).Path()+"/bin/"); err == nil {
			return
		}
	}
	t.Error("no node has a rank 1 of the job")
}

// preempt runs a job of a higher partition on all nodes.
func preempt(t *testing.T, c *cluster.Cluster, _ *trainee) {
	mustRun(t, c, "srun", "--partition=high", "--nodes=3", "--exclusive", "sleep", "1")
}

// preemptGracefully is like preempt, but SLURM first signals the ranks, and gives them time to
// stop.
func preemptGracefully(t *testing.T, c *cluster.Cluster, j *trainee) {
	mustRun(t, c, "scontrol", "update", "partitionname=main", "gracetime=30")
	preempt(t, c, j)
	mustRun(t, c, "scontrol", "update", "partitionname=main", "gracetime=0")
}

// killDaemon makes SLURM lose the job's second node, on which the rank keeps running.
func killDaemon(t *testing.T, c *cluster.Cluster, j *trainee) {
	const lost = "n2"
	if err := c.KillDaemon(lost); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.StartDaemon(lost); err != nil {
			t.Error(err)
		}
	})
	eventually(t, "SLURM notices that the node is lost", func() bool { return j.started() == 2 })
}
