package pjrt

/*
#include <stdlib.h>
#include "keep.h"
#include "plugin.h"
*/
import "C"

import (
	"slices"
	"strings"
	"sync"
	"unsafe"
)

// packing are the options of XLA for CPUs with which it leaves products of matrices to XNNPACK or
// YNNPACK, and the values that turn this off. These libraries rearrange a matrix that is an
// argument of the program once, and again only if it moves in memory. But variables are updated in
// place (see shareMemory): such a program would go on with their old values.
var packing = []struct {
	name string
	off  any
}{{"xla_cpu_use_xnnpack", false}, {"xla_cpu_experimental_ynn_fusion_type", "LIBRARY_FUSION_TYPE_INVALID"}}

// refused has the names of options that the plugin doesn't know: it refuses to compile with them.
var refused sync.Map

// compilePlainly compiles a program for a number of CPUs, without libraries that pack weights.
func compilePlainly(args *C.gb_pjrt_compile_args, cpus int) *C.gb_pjrt_error {
	if forGPUs() {
		return C.gb_compile_for(args, C.int(cpus))
	}
	given, size := args.compile_options, args.compile_options_size
	defer func() { args.compile_options, args.compile_options_size = given, size }()
	for {
		options := append(slices.Clone(bytesOf(given, size)), plainly()...)
		own := (*C.char)(C.CBytes(options))
		args.compile_options, args.compile_options_size = own, C.size_t(len(options))
		err := C.gb_compile_for(args, C.int(cpus))
		C.free(unsafe.Pointer(own))
		if err == nil || !refuses(err) {
			return err
		}
		var text [errorSize]C.char
		C.gb_error_take(err, &text[0], errorSize)
	}
}

// plainly returns the options that turn the libraries off.
func plainly() (options []byte) {
	for _, o := range packing {
		if _, ok := refused.Load(o.name); !ok {
			options = append(options, Flag(o.name, o.off)...)
		}
	}
	return options
}

// refuses reports whether the plugin refuses one of the options that plainly has returned. From now
// on, plainly leaves it out.
func refuses(err *C.gb_pjrt_error) bool {
	var text [errorSize]C.char
	C.gb_error_read(err, &text[0], errorSize)
	for _, o := range packing {
		if !strings.Contains(C.GoString(&text[0]), o.name) {
			continue
		}
		if _, again := refused.LoadOrStore(o.name, true); !again {
			return true
		}
	}
	return false
}
