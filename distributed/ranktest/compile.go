package ranktest

import (
	"os"
	"strings"
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
