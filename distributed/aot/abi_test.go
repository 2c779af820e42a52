package aot

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gonbatch/internal/bounded"
)

// TestABI holds abi.h against the PJRT header that go-xla ships.
func TestABI(t *testing.T) {
	out, err := bounded.Output(exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/gomlx/go-xla"))
	if err != nil {
		t.Fatalf("find go-xla: %v", err)
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	source := filepath.Join(t.TempDir(), "abi.c")
	if err := os.WriteFile(source, []byte(abiProgram), 0o644); err != nil {
		t.Fatal(err)
	}
	header := filepath.Join(strings.TrimSpace(string(out)), "pjrt")
	if out, err := bounded.CombinedOutput(exec.Command("cc", "-fsyntax-only", "-I", header, "-I", here, source)); err != nil {
		t.Errorf("the layouts differ: %v\n%s", err, out)
	}
}

const abiProgram = `
#include <stdbool.h>
#include "pjrt_c_api.h"
#include "abi.h"

#define SAME(ours, theirs) _Static_assert(ours == theirs, #ours " is not " #theirs)
#define FIELD(our, field, their, name) SAME(offsetof(our, field), offsetof(their, name))
#define FUNCTION(index, name) SAME(offsetof(gb_pjrt_api, function) + index * sizeof(void *), offsetof(PJRT_Api, name))

FUNCTION(GB_PJRT_PLUGIN_INITIALIZE, PJRT_Plugin_Initialize);
FUNCTION(GB_PJRT_EXECUTABLE_OPTIMIZED, PJRT_Executable_OptimizedProgram);
FUNCTION(GB_PJRT_TOPOLOGY_CREATE, PJRT_TopologyDescription_Create);
FUNCTION(GB_PJRT_TOPOLOGY_DESTROY, PJRT_TopologyDescription_Destroy);
FUNCTION(GB_PJRT_COMPILE, PJRT_Compile);
FUNCTION(GB_PJRT_EXECUTABLE_MEMORY, PJRT_Executable_GetCompiledMemoryStats);
SAME(GB_PJRT_STRING, PJRT_NamedValue_kString);
SAME(sizeof(gb_pjrt_initialize_args), sizeof(PJRT_Plugin_Initialize_Args));
SAME(sizeof(gb_pjrt_topology_args), sizeof(PJRT_TopologyDescription_Create_Args));
FIELD(gb_pjrt_topology_args, options, PJRT_TopologyDescription_Create_Args, create_options);
FIELD(gb_pjrt_topology_args, topology, PJRT_TopologyDescription_Create_Args, topology);
SAME(sizeof(gb_pjrt_topology_destroy_args), sizeof(PJRT_TopologyDescription_Destroy_Args));
SAME(sizeof(gb_pjrt_topology_compile_args), sizeof(PJRT_Compile_Args));
FIELD(gb_pjrt_topology_compile_args, program, PJRT_Compile_Args, program);
FIELD(gb_pjrt_topology_compile_args, options_size, PJRT_Compile_Args, compile_options_size);
FIELD(gb_pjrt_topology_compile_args, executable, PJRT_Compile_Args, executable);
SAME(sizeof(gb_pjrt_memory_args), sizeof(PJRT_Executable_GetCompiledMemoryStats_Args));
FIELD(gb_pjrt_memory_args, code, PJRT_Executable_GetCompiledMemoryStats_Args, generated_code_size_in_bytes);
FIELD(gb_pjrt_memory_args, arguments, PJRT_Executable_GetCompiledMemoryStats_Args, argument_size_in_bytes);
FIELD(gb_pjrt_memory_args, outputs, PJRT_Executable_GetCompiledMemoryStats_Args, output_size_in_bytes);
FIELD(gb_pjrt_memory_args, aliased, PJRT_Executable_GetCompiledMemoryStats_Args, alias_size_in_bytes);
FIELD(gb_pjrt_memory_args, temporary, PJRT_Executable_GetCompiledMemoryStats_Args, temp_size_in_bytes);
SAME(sizeof(gb_pjrt_optimized_args), sizeof(PJRT_Executable_OptimizedProgram_Args));
FIELD(gb_pjrt_optimized_args, program, PJRT_Executable_OptimizedProgram_Args, program);
`
