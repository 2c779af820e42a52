package ranktest

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gonbatch/internal/machine"
	"gonbatch/internal/rundir"
)

// QuickCompilation makes XLA compile in a quarter of the time. The programs run slower, but still
// give the same results on any number of ranks. Small programs take longer to compile than to run.
const QuickCompilation = "XLA_FLAGS=--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"

// CompileQuickly sets QuickCompilation for this process and the ranks that it starts, unless
// XLA_FLAGS is already set or they compute on GPUs (see CUDA). Call it before the process compiles
// a program.
func CompileQuickly() {
	if useGPUs() {
		return
	}
	name, flags, _ := strings.Cut(QuickCompilation, "=")
	if os.Getenv(name) == "" {
		_ = os.Setenv(name, flags) //nolint:forbidigo // XLA reads it in C
	}
}

// SharedPrograms returns the environment variable that caches compiled programs for all tests and
// for later runs of the tests. Tests of the cache itself use their own folder.
func SharedPrograms() string {
	return rundir.EnvCompileCache + "=" + filepath.Join(machine.Source(), ".cache", "compile-cache")
}

// SharePrograms sets SharedPrograms for this process and the ranks that it starts.
func SharePrograms() {
	if name, folder, _ := strings.Cut(SharedPrograms(), "="); os.Getenv(name) == "" {
		_ = os.Setenv(name, folder) //nolint:forbidigo // the ranks inherit it
	}
}

// QuickMain is the TestMain of a package whose tests compile small programs. Benchmarks compile
// them as usual.
//
//	func TestMain(m *testing.M) { ranktest.QuickMain(m) }
func QuickMain(m *testing.M) {
	flag.Parse()
	if flag.Lookup("test.bench").Value.String() == "" {
		CompileQuickly()
	}
	os.Exit(m.Run())
}
