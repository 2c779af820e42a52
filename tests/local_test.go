package tests

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gonbatch/internal/tier"
)

// TestLocalMNIST does what a newcomer does first: train on this machine.
func TestLocalMNIST(t *testing.T) {
	tier.Long(t)
	u := newUser(t)
	out := u.mustSubmit(t, "--local", mnist(t))
	if got := accuracy(t, out); got < 0.985 {
		t.Errorf("test accuracy %.4f, want at least 0.985:\n%s", got, out)
	}
	run := u.run(t)
	wantAll(t, out, "epoch 2/2  step 1874/1874", "macro F1 0.9", run.Path(), "metrics", "checkpoint")
	checkRecorded(t, run, 1)
	checkFall(t, seriesOf(t, run, "", "train/loss"), 0.3)
	wantAll(t, read(t, run.RankLog(0)), "epoch 2/2  step 1874/1874", "1 cpu device on ")
	wantAll(t, read(t, run.Metrics()), `"step":1874`)
}

// TestLocalDevices trains on several devices of one process, with XLA's own sharding.
func TestLocalDevices(t *testing.T) {
	u := newUser(t)
	out := u.mustSubmit(t, "--local", "--devices", "4", "--env", "TRAINER_LIMIT_TRAIN_BATCHES=100", mnist(t), "--", "-epochs", "1")
	if got := accuracy(t, out); got < 0.85 {
		t.Errorf("test accuracy %.4f after 100 updates:\n%s", got, out)
	}
	wantAll(t, read(t, u.run(t).RankLog(0)), "4 cpu devices on ")
}

// TestLocalRanks runs two ranks with mpirun, and records some updates of both.
func TestLocalRanks(t *testing.T) {
	u := newUser(t)
	out := u.mustSubmit(t, "--local", "--tasks", "2", "--env", "TRAINER_LIMIT_TRAIN_BATCHES=100", "--env", "TRAINER_PROFILE_STEPS=10-15", mnist(t), "--", "-epochs", "1")
	if got := accuracy(t, out); got < 0.85 {
		t.Errorf("test accuracy %.4f after 100 updates:\n%s", got, out)
	}
	run := u.run(t)
	for rank := range 2 {
		wantAll(t, read(t, run.RankLog(rank)), fmt.Sprintf("gonbatch: rank %d of 2", rank))
		wantAll(t, read(t, filepath.Join(run.Traces(), "train-steps-10-15.json")), fmt.Sprintf(`"name":"rank %d on `, rank))
	}
}

// TestReaderGone checks that submit ...
// head ends the ranks too, although neither mpirun nor a rank notices that the reader has gone.
func TestReaderGone(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	name := u.write(t, "talk.ipynb", "%%\nfor i := range 6000 {\n\tfmt.Println(i)\n\ttime.Sleep(10 * time.Millisecond)\n}")
	path, err := submitBinary()
	if err != nil {
		t.Fatal(err)
	}
	for _, tasks := range []string{"1", "2"} {
		out, err := command(u.folder, "bash", "-c", `"$0" --local --tasks "$1" "$2" | head -n 1`, path, tasks, name).Output()
		if err != nil || string(out) != "0\n" {
			t.Errorf("--tasks %s: %q, %v", tasks, out, err)
		}
		eventually(t, "no process of the run is left", func() bool { return len(processesOf(t, u.folder)) == 0 })
	}
}

// processesOf lists the processes whose command line contains the text.
func processesOf(t *testing.T, text string) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, file := range files {
		if line, err := os.ReadFile(file); err == nil && strings.Contains(string(line), text) {
			found = append(found, file)
		}
	}
	return found
}

// TestLocalKeptModel checks that a cell of a job has the model that the cell before it kept, as in
// the kernel.
func TestLocalKeptModel(t *testing.T) {
	u := newUser(t)
	name := filepath.Join(u.folder, "keptmodel.ipynb")
	if err := os.WriteFile(name, []byte(read(t, "../kernel/testdata/keptmodel.ipynb")), 0o644); err != nil {
		t.Fatal(err)
	}
	out := u.mustSubmit(t, "--local", name)
	var values []string
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "[[") {
			values = append(values, line)
		}
	}
	if len(values) != 3 || values[1] != values[0] || values[2] != values[0] {
		t.Errorf("the cells of the job predict %q:\n%s", values, out)
	}
}

// TestLocalKept checks that all ranks begin with the value that a cell kept on rank 0, and that a
// restarted cell begins with the value that the cell before it kept.
func TestLocalKept(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	ranks := u.writeTagged(t, "ranks.ipynb",
		taggedCell{source: "var x int\n%keep x"}, taggedCell{source: "%%\nx = 1"},
		taggedCell{tag: "rank-0", source: "%%\nx = 2"}, taggedCell{source: "%%\nfmt.Println(\"x =\", x)"})
	out := u.mustSubmit(t, "--local", "--tasks", "2", ranks)
	logs := ""
	for rank := range 2 {
		logs += read(t, u.run(t).RankLog(rank))
	}
	if strings.Count(logs, "x = 2\n") != 2 {
		t.Errorf("not every rank has 2:\n%s\n%s", logs, out)
	}
	again := newUser(t)
	name := again.write(t, "again.ipynb", "var x int\n%keep x", "%%\nx = 10",
		"%%\nx++\nif _, err := os.Stat(\"second\"); err != nil {\n\tos.WriteFile(\"second\", nil, 0o600)\n\tpanic(\"first start\")\n}", "%%\nfmt.Println(\"x =\", x)")
	if out, err := again.submit(t, "--local", name); err == nil {
		t.Fatalf("the first start succeeded:\n%s", out)
	}
	wantAll(t, again.mustSubmit(t, "resume", again.run(t).Path()), "x = 11\n")
}
