package distributed_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train"
	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"gonbatch/distributed/affinity"
	"gonbatch/distributed/onednn"
	"gonbatch/distributed/ranktest"
	"gonbatch/internal/rundir"
)

// TestRankWithoutKernels: if one rank has no oneDNN, all ranks have the same weights nevertheless,
// though kernels round differently from XLA.
func TestRankWithoutKernels(t *testing.T) {
	ranktest.RunWith(t, []ranktest.Launcher{ranktest.Torchrun}, 3, func(t *testing.T) {
		library := ranktest.OneDNN(t)
		if os.Getenv("RANK") == "1" {
			library = onednn.Off
		}
		t.Setenv(rundir.EnvOneDNN, library)
		w := initWorld(t)
		network := func(scope *model.Scope, x *graph.Node) *graph.Node {
			return layers.Dense(scope.In("layer"), x, true, 256)
		}
		trainer := train.NewTrainer(w.Backend(), model.NewStore(), network, loss.MeanSquaredError, w.Optimizer(optimizer.Adam().Done()), nil, nil)
		random := rand.New(rand.NewPCG(1, uint64(w.Rank())))
		noise := func(columns int) []*tensors.Tensor {
			values := make([]float32, 16*columns)
			for i := range values {
				values[i] = random.Float32() - 0.5
			}
			return []*tensors.Tensor{tensors.FromFlatDataAndDimensions(values, 16, columns)}
		}
		for range 4 {
			if _, err := trainer.TrainStep(train.Batch{Inputs: noise(128), Labels: noise(256)}); err != nil {
				t.Fatal(err)
			}
		}
		all, err := w.AllGather(fmt.Append(nil, weights(t, trainer.Store())))
		if err != nil {
			t.Fatal(err)
		}
		for rank, theirs := range all {
			if !bytes.Equal(theirs, all[0]) {
				t.Errorf("rank %d has other weights than rank 0", rank)
			}
		}
	})
}

// TestRunOneDNN: in a run, rank 0 says once what computes. The run's own library is opened, even by
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
// is not bound to them. Threads that wait sleep, so that they don't take a CPU from other work,
// unless a batch system gave the CPUs to the rank, or the user wants something else.
func TestOneDNNThreads(t *testing.T) {
	if ranktest.InRank() {
		trainConvolutional(t)
		return
	}
	allowed, err := affinity.Allowed()
	if err != nil {
		t.Fatal(err)
	}
	all := len(allowed)
	library := ranktest.OneDNN(t)
	const sleeping, spinning = "GOMP_SPINCOUNT = '0'", "GOMP_SPINCOUNT = '300000'"
	for name, test := range map[string]struct {
		env     string
		threads int
		waiting string
	}{
		"not bound":           {"SLURM_JOB_ID=1 SLURM_CPUS_PER_TASK=1", min(1, all), sleeping},
		"bound":               {fmt.Sprint("SLURM_JOB_ID=1 SLURM_CPUS_PER_TASK=", all), all, spinning},
		"bound to fewer":      {fmt.Sprint("SLURM_JOB_ID=1 SLURM_CPUS_PER_TASK=", all+1), all, spinning},
		"no job":              {"SLURM_JOB_ID= SLURM_CPUS_PER_TASK=", all, sleeping},
		"the user's policy":   {"OMP_WAIT_POLICY=active", all, "OMP_WAIT_POLICY = 'ACTIVE'"},
		"the user's policy 2": {"SLURM_JOB_ID=1 OMP_WAIT_POLICY=passive", all, sleeping},
	} {
		if all == 1 && name == "not bound" {
			continue // The rank is bound to the only CPU.
		}
		env := append(strings.Fields(test.env), rundir.EnvOneDNN+"="+library, "ONEDNN_VERBOSE=1", "OMP_DISPLAY_ENV=verbose")
		out, err := ranktest.Start(t, ranktest.Torchrun, 1, env)
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
		for _, want := range []string{fmt.Sprintf("nthr:%d\n", test.threads), test.waiting} {
			if !strings.Contains(out, want) {
				t.Errorf("%s: no %q\n%s", name, want, out)
			}
		}
	}
}
