package tests

import (
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gonbatch/distributed/pjrt/testplugin"
	"gonbatch/distributed/ranktest"
	"gonbatch/internal/bounded"
	"gonbatch/tests/cluster"
)

// gpuCluster starts a cluster of two nodes with two GPUs each, and returns a user whose programs
// compute with the test plugin.
func gpuCluster(t *testing.T) user {
	t.Helper()
	c := cluster.Start(t, cluster.Nodes(2), cluster.GPUs(2), cluster.GPUType("a100"), cluster.InDev(ranktest.GPUScript()))
	return newUser(t, append(c.Env(), "GONBATCH_PLUGIN_DIR="+testplugin.Build(t))...)
}

// TestGPUs checks that a job on GPUs has one rank for each GPU, on all nodes.
func TestGPUs(t *testing.T) {
	t.Parallel()
	u := gpuCluster(t)
	t.Run("preflight", func(t *testing.T) {
		out := u.mustSubmit(t, "preflight", "--nodes", "2", "--gpus-per-node", "a100:2")
		wantPlaces(t, out, `0 +n1 +\S.* +1 cuda device, GPU 0, .*`, `1 +n1 +\S.* +1 cuda device, GPU 1, .*`, `2 +n2 +\S.* +1 cuda device, GPU 0, .*`, `3 +n2 +\S.* +1 cuda device, GPU 1, .*`,
			`all-reduce over 4 ranks .* the sum is right, .*s`)
	})
	t.Run("the GPU kit", func(t *testing.T) {
		u, kit := newUser(t, u.env...), filepath.Join(t.TempDir(), "my kit")
		for name, of := range map[string]string{"run.sh": "./bench/gpu", "step": "./bench/step"} {
			build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(kit, name), of)
			build.Dir = ".."
			if out, err := bounded.CombinedOutput(build); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
		}
		out := u.mustSubmit(t, "preflight", "--gpu-check="+kit, "--gpus-per-node", "2", "--", "-quick", "-only", "opens,sum,cnn/gpus")
		wantPlaces(t, out, `2 GPUs: GPU 0, GPU 1, .*`, `ok +sum .*the sum is right.*`, `ok +cnn/gpus .*of 2 times one GPU.s`, `\| cnn/gpus +\| ok .*`)
		wantAll(t, read(t, filepath.Join(u.run(t).Path(), "gpu-check", "results.txt")), "the sum is right")
		program := filepath.Join(kit, "run.sh")
		out, err := u.submit(t, "preflight", "--gpu-check="+kit, "--gpus-per-node", "1", "--setup", fmt.Sprintf("rm '%s'", program))
		wantAll(t, out, "this node doesn't see the GPU kit, "+program+": give --gpu-check=FOLDER")
		if err == nil {
			t.Errorf("it passed without a kit:\n%s", out)
		}
	})
	t.Run("training", func(t *testing.T) {
		declarations, train := smallTraining()
		train = strings.Replace(train, "BatchSize: 10", "BatchSize: 8", 1)
		u := newUser(t, u.env...)
		u.mustSubmit(t, "--nodes", "2", "--gpus-per-node", "2", "--follow", u.write(t, "gpus.ipynb", declarations, train))
		if lines := regexp.MustCompile(`epoch [12]/2  step (25|50)/50  loss [0-9.]+  [0-9]+ examples/s  (?:[0-9]+% waiting for data  )?val/loss`).FindAllString(html.UnescapeString(read(t, u.run(t).Executed())), -1); len(lines) != 2 {
			t.Errorf("%d lines of epochs, want 2: %q", len(lines), lines)
		}
		for rank, node := range []string{"n1", "n1", "n2", "n2"} {
			wantAll(t, read(t, u.run(t).RankLog(rank)), fmt.Sprintf("rank %d of 4 (local rank %d), started by slurm, 1 cuda device on %s", rank, rank%2, node))
		}
	})
	t.Run("a rank dies", func(t *testing.T) {
		u := newUser(t, u.env...)
		out, err := u.submit(t, "--nodes", "2", "--gpus-per-node", "2", "--follow", u.write(t, "dies.ipynb",
			"import \"gonbatch/distributed\"\n%%\nworld, err := distributed.Init()\nif err != nil { panic(err) }\nworld.Progress(1)\nif world.Rank() == 3 { time.Sleep(time.Second); os.Exit(3) }\nfor { time.Sleep(time.Second) }"))
		if err == nil {
			t.Errorf("it succeeded:\n%s", out)
		}
		wantAll(t, out, "rank 3 on n2 failed at step 1 (died)")
	})
	t.Run("more ranks than GPUs", func(t *testing.T) {
		out, err := u.submit(t, "--nodes", "2", "--gpus-per-node", "2", "--tasks-per-node", "3", u.write(t, "many.ipynb", "%%\nfmt.Println(1)"))
		if err == nil {
			t.Errorf("it was taken:\n%s", out)
		}
		wantAll(t, out, "--tasks-per-node=3 with --gpus-per-node=2: each rank needs a GPU of its own")
	})
}

// TestGPUsHere runs ranks on this machine's GPUs if there is one for each, and on CPUs otherwise.
func TestGPUsHere(t *testing.T) {
	t.Parallel()
	path, err := submitBinary()
	if err != nil {
		t.Fatal(err)
	}
	here, folder := ranktest.Torchrun.OnGPUs(t, 2), t.TempDir()
	preflight := func(tasks string, env ...string) string {
		cmd := here.Command(t.Context(), path, "preflight", "--local", "--tasks", tasks)
		cmd.Dir, cmd.Env = folder, append(os.Environ(), env...)
		out, err := bounded.CombinedOutput(cmd)
		if err != nil {
			t.Fatalf("%s tasks: %v\n%s", tasks, err, out)
		}
		return string(out)
	}
	wantPlaces(t, preflight("2", "GONBATCH_PLUGIN_DIR="+testplugin.Build(t)), `0 +\S.* +1 cuda device, GPU 0, .*`, `1 +\S.* +1 cuda device, GPU 1, .*`,
		`all-reduce over 2 ranks .* the sum is right, .*s`)
	wantPlaces(t, preflight("3"), `0 +\S.* +1 cpu device, .*`, `2 +\S.* +1 cpu device, .*`)
}
