// Package aot compiles a program ahead of time for GPUs that the machine lacks. It gives XLA's CUDA
// plugin a description of the GPUs and of how they are spread over nodes. It runs nothing and makes
// no client, so a laptop or a login node will do.
//
//	compiler, err := aot.Open(dir) // Of plugin.EnsureCompiler.
//	compiled, err := compiler.Compile(aot.Topology{Config: h100.Config(), Nodes: 2, GPUsPerNode: 4}, step)
//	// compiled.Memory, compiled.Collectives
//
// XLA is that of the job, with its fusion and its scheduling. What it measures on a GPU, it guesses
// here: which of cuDNN's and cuBLAS's algorithms is fastest. So the memory that these ask for is
// not in the figures.
package aot

/*
#cgo LDFLAGS: -ldl
#include <stdlib.h>
#include "aot.h"
*/
import "C"

import (
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"unsafe"

	"gonbatch/distributed/pjrt"
	"gonbatch/internal/plugin"
)

// Compiler compiles for GPUs.
type Compiler struct{ dir string }

// Topology is for which GPUs.
type Topology struct {
	Config             string // Config is XLA's description of one GPU, as text.
	Nodes, GPUsPerNode int
}

// String is the topology in XLA's words.
func (t Topology) String() string { return fmt.Sprintf("1x%dx%d", t.Nodes, t.GPUsPerNode) }

// Memory is what a program takes on a GPU, in bytes. An output that takes the place of an argument
// is counted as aliased too.
type Memory struct{ Code, Arguments, Outputs, Aliased, Temporary int64 }

// Total is the memory that the program needs at once.
func (m Memory) Total() int64 { return m.Code + m.Arguments + m.Outputs - m.Aliased + m.Temporary }

// Compiled is what is known of a compiled program.
type Compiled struct {
	Memory Memory
	// Collectives are those that XLA has scheduled.
	Collectives []Collective
	// Ranks is the number of GPUs.
	Ranks int
}

const errorSize = 4096

// mu is held while the plugin works: it is opened once for a process.
var mu sync.Mutex

// Open opens the compiler in a folder that plugin.EnsureCompiler has given.
func Open(dir string) (*Compiler, error) {
	mu.Lock()
	defer mu.Unlock()
	path := C.CString(filepath.Join(dir, plugin.FileName(plugin.CUDA)))
	defer C.free(unsafe.Pointer(path))
	var text [errorSize]C.char
	if C.gb_aot_open(path, &text[0], errorSize) != 0 {
		return nil, fmt.Errorf("aot: open XLA's CUDA plugin in %s: %s", dir, C.GoString(&text[0]))
	}
	return &Compiler{dir: dir}, nil
}

// Compile compiles a training step.
func (c *Compiler) Compile(t Topology, step pjrt.Step) (Compiled, error) {
	mu.Lock()
	defer mu.Unlock()
	config, topology := C.CString(t.Config), C.CString(t.String())
	defer C.free(unsafe.Pointer(config))
	defer C.free(unsafe.Pointer(topology))
	options := slices.Concat(step.Options, c.flags())
	code, opts := C.CBytes(step.Program), C.CBytes(options)
	defer C.free(code)
	defer C.free(opts)
	request := C.gb_aot_request{
		target_config: config, topology: topology, program: (*C.char)(code), program_size: C.size_t(len(step.Program)),
		options: (*C.char)(opts), options_size: C.size_t(len(options)),
	}
	var result C.gb_aot_result
	var text [errorSize]C.char
	if C.gb_aot_compile(&request, &result, &text[0], errorSize) != 0 {
		return Compiled{}, fmt.Errorf("aot: for %s GPUs: %s", t, C.GoString(&text[0]))
	}
	defer C.free(unsafe.Pointer(result.program))
	scheduled := C.GoBytes(unsafe.Pointer(result.program), C.int(result.program_size))
	collectives, err := collectivesOf(scheduled)
	if err != nil {
		return Compiled{}, fmt.Errorf("aot: read XLA's scheduled program: %w", err)
	}
	m := result.memory
	return Compiled{
		Memory:      Memory{int64(m.code), int64(m.arguments), int64(m.outputs), int64(m.aliased), int64(m.temporary)},
		Collectives: collectives,
		Ranks:       t.Nodes * t.GPUsPerNode,
	}, nil
}

// flags have XLA find NVIDIA's compiler, and measure nothing, for want of a GPU.
func (c *Compiler) flags() []byte {
	return slices.Concat(
		pjrt.Flag("xla_gpu_cuda_data_dir", filepath.Join(c.dir, "cu13")),
		pjrt.Flag("xla_gpu_autotune_level", int64(0)),
	)
}
