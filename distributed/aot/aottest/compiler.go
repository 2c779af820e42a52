package aottest

import (
	"fmt"
	"os"
	"testing"

	"gonbatch/internal/machine"
	"gonbatch/internal/plugin"
)

// Compiler returns the folder of XLA's compiler for GPUs, as package aot opens it. It is
// downloaded once for all tests and programs of this machine.
func Compiler(t testing.TB) (dir string) {
	t.Helper()
	dir, err := plugin.EnsureCompiler(t.Context(), plugin.Options{Progress: os.Stderr})
	if err != nil {
		machine.Lacks(t, fmt.Sprintf("XLA's compiler for GPUs (257 MB) can't be installed: %v", err))
	}
	return dir
}
