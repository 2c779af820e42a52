// Package pjrt loads an XLA PJRT plugin for go-xla and adds gonbatch's collectives to the programs
// that it compiles.
//
// AllReduceSum and the methods of Collective add a named function to the graph. The package wraps
// the compile call in the plugin's API table, and replaces the function's body there. The
// collective is thus part of the single compiled program of a training step. On CPUs the body is a
// custom call, registered through the plugin's own FFI extension:
//
//	if err := pjrt.Load("cpu", path); err != nil { ... }
//	if err := pjrt.RegisterTransport("cpu", comm.Transport(), comm.Size()); err != nil { ... }
//	backend, err := xla.New("cpu")
//
// On GPUs it is XLA's own collective, between clients of several processes. go-xla doesn't set the
// callbacks that these need, so the creation of clients is wrapped too:
//
//	if err := pjrt.Join("cuda", processes); err != nil { ... }
//	backend, err := xla.NewWithOptions("cuda", processes.ClientOptions())
//
// KeepPrograms caches compiled programs on disk for later processes, in the wrapped compile call.
//
// The package knows nothing about MPI: the package that moves the bytes provides a C function, the
// transport.
package pjrt

/*
#cgo LDFLAGS: -ldl
#include <stdlib.h>
#include "frame.h"
#include "plugin.h"
*/
import "C"

import (
	"fmt"
	"sync"
	"unsafe"

	"github.com/gomlx/go-xla/pjrt"

	_ "gonbatch/distributed/memory" // The pool has XLA's buffers.
)

// Transport is a C function that runs a collective. Its C type is
//
//	int (*)(int kind, const void *in, void *out, int64_t count, int dtype, const int64_t *form,
//	        char *error, size_t error_size)
//
// where dtype is an xla::PrimitiveType (S32 4, S64 5, F32 11, F64 12; U8 6 where nothing is summed;
// F16 10 and BF16 16 where nothing is reduced), and kind one of
//
//   - 1, all-reduce: reduces the count elements at out over the ranks, in place. in is NULL.
//   - 2, broadcast: replaces the count elements at out by the root's. in is NULL.
//   - 3, all-gather: puts the count elements at in of all ranks at out, in order of rank. If in is
//     NULL, this rank's are already there.
//   - 5, reduce-scatter: reduces what the ranks have at in, count elements for each rank, and puts
//     this rank's at out. in stays as it is.
//   - 6, all-to-all: puts the count elements that each rank has at in for this rank at out, in
//     order of rank. in stays as it is.
//
// form may be NULL for a sum over all ranks. Otherwise it has these numbers, the same on all ranks:
//
//   - a number for reports, which differs if the others do,
//   - the Reduction,
//   - the root: its place in its group,
//   - the number of ranks if they are divided into groups, else 0,
//   - in that case, for each rank, the number of its group and its place in it. The collective is
//     then one of each group, and the order of rank is that of the places.
//
// All ranks call it in the same order, whatever their groups, which have the same size.
//
// It returns 0, or non-zero and a zero-terminated text in error. XLA calls it from its own threads,
// but never twice at once for one program.
type Transport unsafe.Pointer

const errorSize = 1024

var (
	mu     sync.Mutex
	loaded = map[string]string{} // platform -> path

	version C.gb_pjrt_version // That of the plugin.

	ranks int // The number of ranks of collectives; 0 if not set yet.

	theLowering lowering // How collectives are lowered; nil if not set yet.
)

func registeredRanks() int {
	mu.Lock()
	defer mu.Unlock()
	return ranks
}

// Load opens the PJRT plugin at path and registers it with go-xla as platform ("cpu" or "cuda"), so
// that xla.New(platform) uses it. Loading the same path again does nothing. A process can load only
// one plugin.
func Load(platform, path string) error {
	mu.Lock()
	defer mu.Unlock()
	if previous, ok := loaded[platform]; ok && previous == path {
		return nil
	}
	for p, previous := range loaded {
		return fmt.Errorf("pjrt: can't load %s for %q: this process has already loaded %s for %q", path, platform, previous, p)
	}
	cPath := C.CString(path)
	defer C.free(unsafe.Pointer(cPath))
	var text [errorSize]C.char
	api := C.gb_plugin_load(cPath, &text[0], errorSize)
	if api == nil {
		return fmt.Errorf("pjrt: can't load the XLA plugin %s: %s", path, C.GoString(&text[0]))
	}
	if err := pjrt.RegisterPreloadedPlugin(platform, uintptr(unsafe.Pointer(api))); err != nil {
		return fmt.Errorf("pjrt: can't start the XLA plugin %s: %w", path, err)
	}
	loaded[platform], version = path, api.version
	return nil
}

// Version returns the PJRT API version of the loaded plugin, or 0, 0 if none is loaded.
func Version() (major, minor int) {
	mu.Lock()
	defer mu.Unlock()
	return int(version.major_version), int(version.minor_version)
}

// RegisterTransport makes the collectives of programs use the transport, over the given number of
// ranks. The plugin must be loaded. The number of ranks of a process can't change.
func RegisterTransport(platform string, transport Transport, size int) error {
	mu.Lock()
	defer mu.Unlock()
	if err := checkWorld(size); err != nil {
		return err
	}
	C.gb_set_transport(C.gb_transport(transport), C.int(size))
	err := registerHandlers(platform, "collectives of a transport", map[string]unsafe.Pointer{
		collectiveTarget(size):                         C.gb_collective_call,
		does{op: allReduce, part: start}.target(size):  C.gb_start_call,
		does{op: allReduce, part: finish}.target(size): C.gb_finish_call,
	})
	if err == nil {
		setWorld(customCall{}, size)
	}
	return err
}

// checkLoaded returns an error if no plugin is loaded. The lock is held.
func checkLoaded(platform string) error {
	if _, ok := loaded[platform]; !ok {
		return fmt.Errorf("pjrt: no XLA plugin is loaded for %q: call Load first", platform)
	}
	return nil
}

// registerHandlers gives XLA the handlers of custom calls, by their names. The lock is held.
func registerHandlers(platform, what string, handlers map[string]unsafe.Pointer) error {
	if err := checkLoaded(platform); err != nil {
		return err
	}
	if platform != "cpu" {
		return fmt.Errorf("pjrt: %s can't reach the memory of %q", what, platform)
	}
	for target, handler := range handlers {
		var text [errorSize]C.char
		// XLA keeps the name of the target, so it is not freed.
		if C.gb_plugin_register(C.CString(target), handler, &text[0], errorSize) != 0 {
			return fmt.Errorf("pjrt: the XLA plugin %s can't run %s: %s", loaded[platform], what, C.GoString(&text[0]))
		}
	}
	return nil
}
