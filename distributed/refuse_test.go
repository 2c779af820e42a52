package distributed_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train"
	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"gonbatch/distributed"
	"gonbatch/distributed/ranktest"
)

// initChild marks the process that TestInitRefuses starts, because a process can call Init only
// once.
const initChild = "GONBATCH_TEST_INIT"

// TestInitRefuses: each of these gives one clear error immediately.
func TestInitRefuses(t *testing.T) {
	if os.Getenv(initChild) != "" {
		w, err := distributed.Init()
		t.Logf("Init: %v, %v", w, err)
		return
	}
	slurm := append([]string{"SLURM_JOB_ID=7", "SLURM_STEP_ID=0", "SLURM_PROCID=1", "SLURM_NTASKS=2", "SLURM_LOCALID=0"},
		ranktest.Loopback()...)
	tests := []struct {
		name string
		env  []string
		want []string
	}{
		{"MPI of size 1 in a SLURM step of 2 tasks", append([]string{"GONBATCH_MPI_LIBRARY=libmpich.so.12"}, slurm...),
			[]string{"rank 1 of 2 (local rank 0), started by slurm", "MPICH", "says rank 0 of 1", "srun --mpi=pmix", "srun --mpi=pmi2", "GONBATCH_MPI_LIBRARY"}},
		{"no MPI library", append([]string{"GONBATCH_MPI_LIBRARY=/nowhere/libmpi.so"}, slurm...),
			[]string{"slurm started 2 ranks", "no MPI library could be opened", "/nowhere/libmpi.so", "apt-get install openmpi-bin"}},
		{"a rank that is none", []string{"RANK=two", "WORLD_SIZE=2"}, []string{`RANK is "two"`}},
		{"devices", []string{"GONBATCH_DEVICES=many"}, []string{`GONBATCH_DEVICES="many"`, "at least 1, or all"}},
		{"no devices", []string{"GONBATCH_DEVICES=0"}, []string{`GONBATCH_DEVICES="0"`, "at least 1, or all"}},
		{"platform", []string{"GONBATCH_PLATFORM=tpu"}, []string{`GONBATCH_PLATFORM="tpu"`, "cpu or cuda"}},
		{"a stuck timeout that is none", []string{"GONBATCH_STUCK_TIMEOUT=soon"}, []string{`GONBATCH_STUCK_TIMEOUT="soon"`, "90s or 10m"}},
		{"no GPU", []string{"GONBATCH_PLATFORM=cuda", "CUDA_VISIBLE_DEVICES="}, []string{"rank 0 on ", "GPU", "--gpus-per-node", "--platform cpu"}},
		{"no plugin where it should be", []string{"GONBATCH_PLUGIN_DIR=/nowhere"}, []string{"GONBATCH_PLUGIN_DIR", "/nowhere"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestInitRefuses$", "-test.v")
			child.Env = append(append(os.Environ(), initChild+"=1"), test.env...)
			out, _ := child.CombinedOutput()
			for _, want := range append(test.want, "Init: <nil>, distributed: ") {
				if !strings.Contains(string(out), want) {
					t.Errorf("the output lacks %q:\n%s", want, out)
				}
			}
		})
	}
}

// TestReservedScope: a loop of one's own refuses weights where GoMLX keeps variables that each rank
// has for itself.
func TestReservedScope(t *testing.T) {
	ranktest.RunWith(t, []ranktest.Launcher{ranktest.Torchrun}, 2, func(t *testing.T) {
		w := initWorld(t)
		net := func(scope *model.Scope, x *graph.Node) *graph.Node { return smallNet(scope.In("metrics"), x) }
		trainer := train.NewTrainer(w.Backend(), model.NewStore(), net, loss.SparseCategoricalCrossEntropyLogits, w.Optimizer(optimizer.Adam().Done()), nil, nil)
		loader, err := w.Loader(ranktest.Blobs(24), distributed.LoaderOptions{BatchSize: 12})
		if err != nil {
			t.Fatal(err)
		}
		if err := epoch(w, trainer, loader); err == nil || !strings.Contains(err.Error(), "the model has the weight /metrics/") {
			t.Errorf("got %v", err)
		}
	})
}
