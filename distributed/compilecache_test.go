package distributed_test

import (
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"testing"

	"gonbatch/distributed/pjrt"
	"gonbatch/distributed/ranktest"
	"gonbatch/internal/compilecache"
	"gonbatch/internal/rundir"
	"gonbatch/internal/tier"
)

// TestCompileCache: a training run gives bit-identical results whether its programs were compiled
// or loaded, including those with collectives. A program is compiled once for all ranks and for
// later starts.
func TestCompileCache(t *testing.T) {
	if ranktest.InRank() {
		trainRank(t)
		fmt.Printf("compiled %d programs\n", pjrt.Compilations())
		return
	}
	type cached struct {
		name     string
		launcher ranktest.Launcher
		ranks    int
		env      []string
	}
	tests := []cached{
		{"2 ranks, MPICH", ranktest.MPICH, 2, nil},
		{"3 ranks on GPUs", ranktest.Torchrun.OnGPUs(t, 3), 3, nil},
		{"2 devices of one process", ranktest.OpenMPI, 1, []string{rundir.EnvDevices + "=2"}},
		{"2 ranks over TCP, gradients that travel", ranktest.Torchrun, 2, travelling},
		{"1 rank", ranktest.OpenMPI, 1, nil},
		{"2 ranks, Open MPI", ranktest.OpenMPI, 2, nil},
		{"2 ranks over TCP", ranktest.Torchrun, 2, nil},
		{"1 rank on a GPU", ranktest.Torchrun.OnGPUs(t, 1), 1, nil},
	}
	for _, test := range tier.Fewer(tests, 2) {
		t.Run(test.name, func(t *testing.T) {
			folder := t.TempDir()
			start := func(cache string) (outcome, int) {
				got, out := run(t, test.launcher, test.ranks, append(test.env, rundir.EnvCompileCache+"="+cache)...)
				return got, compiled(t, out, test.ranks)
			}
			want, each := start(compilecache.Off)
			cold, once := start(folder)
			warm, none := start(folder)
			if !reflect.DeepEqual(cold, want) || !reflect.DeepEqual(warm, want) {
				t.Errorf("without the cache %v, with an empty one %v, with a full one %v", want.Metrics, cold.Metrics, warm.Metrics)
			}
			if stored := entries(t, folder); none != 0 || once != stored || test.ranks > 1 && once >= each {
				t.Errorf("programs compiled: %d without the cache, %d with an empty one, which then held %d, %d with a full one", each, once, stored, none)
			}
		})
	}
}

// compiled adds up the numbers of programs that the ranks have compiled.
func compiled(t *testing.T, out string, ranks int) (sum int) {
	t.Helper()
	all := regexp.MustCompile(`compiled (\d+) programs`).FindAllStringSubmatch(out, -1)
	if len(all) != ranks {
		t.Fatalf("%d of %d ranks printed how many programs they compiled:\n%s", len(all), ranks, out)
	}
	for _, match := range all {
		n, err := strconv.Atoi(match[1])
		if err != nil {
			t.Fatal(err)
		}
		sum += n
	}
	return sum
}

func entries(t *testing.T, folder string) int {
	t.Helper()
	cache, err := compilecache.Open(folder, compilecache.Limit, nil)
	if err != nil {
		t.Fatal(err)
	}
	all, err := cache.Programs()
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}
