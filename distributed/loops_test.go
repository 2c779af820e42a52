package distributed_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/distributed/affinity"
	"gonbatch/distributed/ranktest"
	"gonbatch/internal/rundir"
)

// TestLoopsUseAllCPUs: a loop over much memory is divided among all CPUs of the rank.
func TestLoopsUseAllCPUs(t *testing.T) {
	if ranktest.InRank() {
		w := initWorld(t)
		exec := graph.MustNewExec(w.Backend(), func(x *graph.Node) *graph.Node { return graph.AddScalar(x, 1) })
		exec.MustCall1(tensors.FromFlatDataAndDimensions(make([]float32, 4096*4096), 4096, 4096))
		return
	}
	cpus, err := affinity.Allowed()
	if err != nil {
		t.Fatal(err)
	}
	dump := t.TempDir()
	env := []string{rundir.EnvDevices + "=1", rundir.EnvCompileCache + "=off", "XLA_FLAGS=--xla_dump_hlo_as_text --xla_dump_to=" + dump}
	if out, err := ranktest.Start(t, ranktest.Torchrun, 1, env); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	files, err := filepath.Glob(filepath.Join(dump, "*cpu_after_optimizations.txt"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%d programs: %v", len(files), err)
	}
	program, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`"outer_dimension_partitions":\["(\d+)"\]`).FindSubmatch(program)
	if len(cpus) > 1 && (found == nil || string(found[1]) != fmt.Sprint(len(cpus))) {
		t.Errorf("%d CPUs, and the loop has other parts:\n%s", len(cpus), program)
	}
}
