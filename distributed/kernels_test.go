package distributed_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gonbatch/distributed/affinity"
	"gonbatch/distributed/onednn"
	"gonbatch/distributed/ranktest"
	"gonbatch/internal/rundir"
)

// TestRunOneDNN: in a run, rank 0 says once what computes. The run's own library is opened, also by
// a link. If that can't be opened here, each rank says so in a line, and XLA computes the same.
func TestRunOneDNN(t *testing.T) {
	if ranktest.InRank() {
		trainConvolutional(t)
		return
	}
	library, err := filepath.EvalSymlinks(ranktest.OneDNN(t))
	if err != nil {
		t.Fatal(err)
	}
	foreign := filepath.Join(t.TempDir(), "libdnnl.so.3")
	if err := os.WriteFile(foreign, []byte("for another processor"), 0o600); err != nil {
		t.Fatal(err)
	}
	var want []float64
	for _, test := range []struct {
		name, staged, variable string
		kernels                bool
		says                   string // Rank 0, once.
		warns                  string // Each rank, once.
	}{
		{name: "off", variable: onednn.Off, says: "gonbatch: XLA computes everything: GONBATCH_ONEDNN=off"},
		{name: "the run's own", staged: library, kernels: true, says: "gonbatch: oneDNN 3.2.0 computes convolutions and large products of float32 (" + library + ")"},
		{name: "it can't be opened", staged: foreign, warns: "computes without the oneDNN of this run, and takes longer: oneDNN could not be opened: " + foreign},
		{name: "it is gone", staged: "/nowhere/libdnnl.so.3", warns: "computes without the oneDNN of this run"},
	} {
		t.Run(test.name, func(t *testing.T) {
			run := rundir.At(t.TempDir())
			env := []string{rundir.EnvDir + "=" + run.Path(), rundir.EnvOneDNN + "=" + test.variable}
			if test.staged != "" {
				env[1] = rundir.EnvOneDNN + "=" + run.OneDNN()
				if err := os.Mkdir(run.Plugins(), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.Symlink(test.staged, run.OneDNN()); err != nil {
					t.Fatal(err)
				}
			}
			out, err := ranktest.Start(t, ranktest.Torchrun, 2, env)
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			losses, kernels := printed(t, out, "loss"), printed(t, out, "kernels")
			if len(losses) != 5 || (kernels[0] > 0) != test.kernels {
				t.Fatalf("losses %v, %v kernels\n%s", losses, kernels, out)
			}
			if want == nil {
				want = losses
			}
			if difference := losses[4] - want[4]; difference > 1e-4 || difference < -1e-4 {
				t.Errorf("the last loss is %v, and %v without oneDNN", losses[4], want[4])
			}
			if test.says != "" && strings.Count(out, test.says) != 1 {
				t.Errorf("not once: %q\n%s", test.says, out)
			}
			for rank := range 2 {
				line := fmt.Sprintf("gonbatch: warning: rank %d on ", rank)
				if n := strings.Count(out, line); (n == 1) != (test.warns != "") || !strings.Contains(out, test.warns) {
					t.Errorf("rank %d warns %d times\n%s", rank, n, out)
				}
			}
			if strings.Contains(out, "PyPI") {
				t.Errorf("a warning of several lines:\n%s", out)
			}
		})
	}
}

// TestOneDNNThreads: the kernels use no more threads than SLURM gave the rank CPUs, even where it
// is not bound to them, and threads that wait sleep, so that they don't take a CPU from other work.
func TestOneDNNThreads(t *testing.T) {
	if ranktest.InRank() {
		trainConvolutional(t)
		return
	}
	allowed, err := affinity.Allowed()
	if err != nil {
		t.Fatal(err)
	}
	env := []string{rundir.EnvOneDNN + "=" + ranktest.OneDNN(t), "ONEDNN_VERBOSE=1", "OMP_DISPLAY_ENV=verbose"}
	for given, threads := range map[string]int{"1": 1, "": len(allowed), "9999": len(allowed)} {
		out, err := ranktest.Start(t, ranktest.Torchrun, 1, append(env, "SLURM_CPUS_PER_TASK="+given))
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		for _, want := range []string{fmt.Sprintf("nthr:%d\n", threads), "GOMP_SPINCOUNT = '0'"} {
			if !strings.Contains(out, want) {
				t.Errorf("SLURM_CPUS_PER_TASK=%q: no %q\n%s", given, want, out)
			}
		}
	}
	out, err := ranktest.Start(t, ranktest.Torchrun, 1, append(env, "OMP_WAIT_POLICY=active"))
	if err != nil || !strings.Contains(out, "OMP_WAIT_POLICY = 'ACTIVE'") {
		t.Errorf("the user's own policy isn't used: %v\n%s", err, out)
	}
}
