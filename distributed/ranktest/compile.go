package ranktest

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"gonbatch/internal/rundir"
)

// QuickCompilation has XLA spend a quarter of the time on a program, which then runs slower and
// gives the same results on any number of ranks. Small programs take longer to compile than to run.
const QuickCompilation = "XLA_FLAGS=--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"

// CompileQuickly sets QuickCompilation for this process, which has not compiled yet, and for the
// ranks that it starts, unless the environment has other flags for XLA.
func CompileQuickly() {
	name, flags, _ := strings.Cut(QuickCompilation, "=")
	if os.Getenv(name) == "" {
		_ = os.Setenv(name, flags) //nolint:forbidigo // XLA reads it in C
	}
}

// SharedPrograms is the variable that has programs kept compiled, for all tests and from one run of
// them to the next. Tests of the cache itself take a folder of their own.
func SharedPrograms() string {
	_, file, _, _ := runtime.Caller(0)
	root := filepath.Dir(filepath.Dir(filepath.Dir(file)))
	return rundir.EnvCompileCache + "=" + filepath.Join(root, ".cache", "compile-cache")
}

// SharePrograms sets SharedPrograms for this process and the ranks that it starts.
func SharePrograms() {
	if name, folder, _ := strings.Cut(SharedPrograms(), "="); os.Getenv(name) == "" {
		_ = os.Setenv(name, folder) //nolint:forbidigo // the ranks inherit it
	}
}
