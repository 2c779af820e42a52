package tests

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"gonbatch/checkpoint"
	"gonbatch/internal/rundir"
	"gonbatch/internal/tier"
	"gonbatch/tests/cluster"
)

var jobLine = regexp.MustCompile(`(?m)^job (\d+): `)

// TestSlurm submits notebooks to a real cluster of three nodes.
func TestSlurm(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t)
	t.Run("MNIST on two nodes with Open MPI", func(t *testing.T) { trainOnTwoNodes(t, c, "pmix", "Open MPI", tier.Tries(937, 100)) })
	t.Run("MNIST on two nodes with MPICH", func(t *testing.T) { trainOnTwoNodes(t, c, "pmi2", "MPICH", tier.Tries(300, 100)) })
	for name, test := range map[string]func(*testing.T, *cluster.Cluster){
		"a launcher and an MPI that do not match": mismatch, "a failing notebook": failing, "cancel": cancel, "by hand": byHand,
		"hostile names": hostile, "refused by sbatch": refused, "fences": fences, "linear regression": linearOnTwoNodes, "a GPT": gptOnTwoNodes,
		"Fashion-MNIST": fashionOnTwoNodes, "CIFAR-10": cifarOnTwoNodes, "the tour": tourFromJupyter, "the GAN": ganFromJupyter,
		"a sweep": sweepOnTwoNodes, "fine-tuning": fineTuneOnTwoNodes, "data loading": loadOnTwoNodes, "inference": inferOnTwoNodes,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, c)
		})
	}
}

// trainOnTwoNodes is the main use, in one epoch or less: submit --nodes 2 --follow mnist.ipynb.
func trainOnTwoNodes(t *testing.T, c *cluster.Cluster, mpi, library string, updates int) {
	u := newUser(t, c.Env()...)
	out := u.mustSubmit(t, "--nodes", "2", "--cpus-per-task", "1", "--mpi", mpi, "--env", fmt.Sprint("TRAINER_LIMIT_TRAIN_BATCHES=", updates), "--follow", mnist(t), "--", "-epochs", "1")
	if got, want := accuracy(t, out), map[int]float64{937: 0.97, 300: 0.93, 100: 0.85}[updates]; got < want {
		t.Errorf("test accuracy %.4f after %d updates, want at least %.3f", got, updates, want)
	}
	run := u.run(t)
	wantAll(t, out, run.Path(), fmt.Sprintf("epoch 1/1  step %d/%[1]d", updates))
	for rank, node := range c.Nodes[:2] {
		wantAll(t, read(t, run.RankLog(rank)), fmt.Sprintf("gonbatch: rank %d of 2", rank), "on "+node, library)
	}
	if other := read(t, run.RankLog(1)); strings.Contains(other, "test/") {
		t.Errorf("rank 1 printed the result too:\n%s", other)
	}
	checkFall(t, seriesOf(t, run, "", "train/loss"), 0.5)
	wantAll(t, read(t, run.Metrics()), `"train/loss":`, `"test/accuracy":`, fmt.Sprintf(`"step":%d`, updates))
	if _, err := checkpoint.Read(filepath.Join(run.Checkpoints(), "train", fmt.Sprintf("step-%08d", updates))); err != nil {
		t.Error(err)
	}
	checkManifest(t, run, out)
}

func checkManifest(t *testing.T, run rundir.Dir, out string) {
	t.Helper()
	m, err := rundir.ReadManifest(run)
	if err != nil {
		t.Fatal(err)
	}
	if m.JobID != job(t, out) || m.State != "completed" || len(m.Cells) != 1 || m.Cells[0].Name != "train" {
		t.Errorf("manifest: job %q, state %q, cells %+v", m.JobID, m.State, m.Cells)
	}
	wantAll(t, read(t, run.ManifestPath()), "sha256", "go1.", "v0.28.8", "-epochs")
}

// job finds the job's ID in the output of submit.
func job(t *testing.T, out string) string {
	t.Helper()
	match := jobLine.FindStringSubmatch(out)
	if match == nil {
		t.Fatalf("no job id in:\n%s", out)
	}
	return match[1]
}

// mismatch checks that two ranks that each form an MPI world of their own, as with srun --mpi=none,
// do not silently train twice.
func mismatch(t *testing.T, c *cluster.Cluster) {
	u := newUser(t, c.Env()...)
	out, err := u.submit(t, "--nodes", "2", "--mpi", "none", "--mpi-library", "libmpich.so.12", "--follow", mnist(t))
	if err == nil {
		t.Errorf("the job succeeded:\n%s", out)
	}
	wantAll(t, out, "says rank 0 of 1", "srun --mpi=pmi2", "failed")
}

// failing checks that a panic names the notebook, the cell and the line, and that submit fails with
// the job.
func failing(t *testing.T, c *cluster.Cluster) {
	u := newUser(t, c.Env()...)
	name := u.write(t, "broken.ipynb", "func half(x []int) int {\n\treturn x[len(x)]\n}", "%%\nprintln(half([]int{1}))")
	out, err := u.submit(t, "--nodes", "2", "--follow", name)
	if err == nil {
		t.Errorf("the job succeeded:\n%s", out)
	}
	wantAll(t, out, "index out of range [1] with length 1", "broken.ipynb[cell 1]:2", "failed")
	if m, err := rundir.ReadManifest(u.run(t)); err != nil || m.State != "failed" {
		t.Errorf("manifest: %q, %v", m.State, err)
	}
	wantAll(t, u.mustSubmit(t, "status", job(t, out)), "failed")
}

// cancel cancels a running job, and checks that status says so.
func cancel(t *testing.T, c *cluster.Cluster) {
	u := newUser(t, c.Env()...)
	name := u.write(t, "long.ipynb", "%%\nfmt.Println(\"started\")\ntime.Sleep(time.Hour)")
	id := job(t, u.mustSubmit(t, name))
	eventually(t, "the program starts", func() bool {
		out, err := u.submit(t, "logs", id)
		return err == nil && strings.Contains(out, "started")
	})
	wantAll(t, u.mustSubmit(t, "status", id), "running")
	u.mustSubmit(t, "cancel", id)
	eventually(t, "the job is cancelled", func() bool {
		out, err := u.submit(t, "status", id)
		return err == nil && strings.Contains(out, "cancelled")
	})
	eventually(t, "the last of it has ended", func() bool {
		out, err := c.Run("squeue", "--noheader", "--jobs", id)
		return err == nil && strings.TrimSpace(out) == ""
	})
}

// byHand runs the compiled program with srun, without submit.
func byHand(t *testing.T, c *cluster.Cluster) {
	u := newUser(t, c.Env()...)
	name := u.write(t, "hello.ipynb", `import "gonbatch/distributed"

var word = flag.String("word", "hello", "what to say")`, `%%
world, err := distributed.Init()
if err != nil {
	log.Fatal(err)
}
defer world.Close()
sum := []float64{float64(world.Rank() + 1)}
if err := world.AllReduceSum(sum); err != nil {
	log.Fatal(err)
}
world.Printf("%s from %d ranks, sum %v\n", *word, world.Size(), sum[0])`)
	u.mustSubmit(t, "--nodes", "2", "--no-submit", name)
	programs, err := filepath.Glob(filepath.Join(u.run(t).Path(), "bin", "*"))
	if err != nil || len(programs) != 1 {
		t.Fatalf("programs: %v, %v", programs, err)
	}
	out, err := c.Run("env", ringFence, "srun", "--mpi=pmix", "-N2", "--ntasks-per-node=1", programs[0], "-word", "servus")
	if err != nil {
		t.Fatal(err)
	}
	wantAll(t, out, "servus from 2 ranks, sum 3")
}

// hostile uses names and values full of characters that mean something to a shell.
func hostile(t *testing.T, c *cluster.Cluster) {
	u := newUser(t, c.Env()...)
	name := u.write(t, `a "b" $(touch pwned) 'c';d.ipynb`, "%%\nfmt.Printf(\"%q %q\\n\", flag.Args(), os.Getenv(\"ODD\"))")
	value := "x y \"z\" '$(touch pwned)' `touch pwned` \\ \n;é"
	out := u.mustSubmit(t, "--follow", "--name", `job "x" $(touch pwned)`, "--env", "ODD="+value, "./"+name, "--", value, "--", "-n")
	wantAll(t, out, fmt.Sprintf("%q", []string{value, "--", "-n"}), fmt.Sprintf("%q", value))
	if found, _ := filepath.Glob(filepath.Join(u.folder, "*pwned")); len(found) != 0 {
		t.Errorf("part of a name was executed: %v", found)
	}
	if found, _ := filepath.Glob(filepath.Join(u.run(t).Path(), "pwned")); len(found) != 0 {
		t.Errorf("part of a name was executed: %v", found)
	}
}

// refused checks that the error has sbatch's own message.
func refused(t *testing.T, c *cluster.Cluster) {
	u := newUser(t, c.Env()...)
	name := u.write(t, "small.ipynb", "%%\nprintln(1)")
	out, err := u.submit(t, "--partition", "nosuch", name)
	if err == nil {
		t.Errorf("a partition that does not exist was accepted:\n%s", out)
	}
	wantAll(t, out, "--partition=nosuch: the cluster has main and high")
}

// patience is how long a test waits for something that is immediate on an idle machine. It only
// ends the wait for what never happens; being late is not a failure.
const patience = 5 * time.Minute

// eventually waits until done reports true.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	within(t, patience, what, done)
}

// within waits until done, and fails the test after a limit.
func within(t *testing.T, limit time.Duration, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(limit); !done(); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("after %v: still waiting until %s", limit, what)
		}
	}
}
