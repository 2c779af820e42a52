package pjrt

/*
#include <stdlib.h>
#include "keep.h"
*/
import "C"

import (
	"bytes"
	"cmp"
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"

	"gonbatch/distributed/affinity"
	"gonbatch/distributed/memory"
	"gonbatch/internal/compilecache"
	"gonbatch/internal/solo"
)

// kept is the cache of compiled programs; nil if there is none.
var kept atomic.Pointer[compilecache.Cache]

// KeepPrograms stores the programs that this process compiles from now on in a cache, and loads
// those that it already has. A nil cache turns that off.
func KeepPrograms(cache *compilecache.Cache) { kept.Store(cache) }

// The number of programs that this process has compiled itself, and the nanoseconds spent on
// compiling and loading.
var compilations, compileTime atomic.Int64

// Compilations returns the number of programs that this process has compiled rather than loaded.
func Compilations() int { return int(compilations.Load()) }

// CompileTime returns how long this process has waited for its programs to be compiled or loaded.
func CompileTime() time.Duration { return time.Duration(compileTime.Load()) }

// gonbatchCompile is called by plugin.c instead of the plugin's function, with the program already
// rewritten.
//
//export gonbatchCompile
func gonbatchCompile(args *C.gb_pjrt_compile_args) *C.gb_pjrt_error {
	start := time.Now()
	defer solo.Begin("compiles " + cmp.Or(moduleName(bytesOf(args.program.code, args.program.code_size)), "a program"))()
	lastClient.Store((*byte)(args.client))
	defer func() { compileTime.Add(int64(time.Since(start))) }()
	restore, failure := withOptions(args)
	if failure != nil {
		return failure
	}
	defer restore()
	if failure, ok := taken(args); ok {
		return failure
	}
	if failure = compileOrLoad(args); failure == nil {
		remember(args)
	}
	return failure
}

func compileOrLoad(args *C.gb_pjrt_compile_args) *C.gb_pjrt_error {
	cache := kept.Load()
	if cache == nil {
		return compileNow(args)
	}
	program := bytesOf(args.program.code, args.program.code_size)
	key, ok := keyOf(args.client, program, bytesOf(args.compile_options, args.compile_options_size))
	if !ok {
		return compileNow(args)
	}
	var failure *C.gb_pjrt_error
	load := func(entry []byte) error {
		args.executable = C.gb_load(args.client, unsafe.Pointer(unsafe.SliceData(entry)), C.size_t(len(entry)))
		if args.executable == nil {
			return errRefused
		}
		return nil
	}
	compile := func() ([]byte, error) {
		if failure = compileNow(args); failure != nil {
			return nil, errRefused
		}
		return serialize(args.executable), nil
	}
	_ = cache.Do(key, moduleName(program), load, compile) // It fails only if compile fails, and failure has the reason.
	return failure
}

var errRefused = errors.New("refused by XLA")

func compileNow(args *C.gb_pjrt_compile_args) *C.gb_pjrt_error {
	compilations.Add(1)
	defer memory.Trim()
	return compilePlainly(args, countedCPUs(bytesOf(args.program.code, args.program.code_size)))
}

// countedCPUs returns how many CPUs XLA should find while it compiles a program; 0 is those that
// there are. It divides loops that mostly move memory among the square root of them, and those of
// one device should use all. With several devices, the others are busy meanwhile.
func countedCPUs(program []byte) int {
	cpus, err := affinity.Allowed()
	if err != nil || C.gb_can_count() == 0 || forGPUs() || partitionsOf(headOf(program)) > 1 {
		return 0
	}
	n := len(cpus)
	if threads, err := strconv.Atoi(variable("NPROC")); err == nil && threads > 0 {
		n = min(n, threads) // A quota may allow fewer.
	}
	return n * n
}

// serialize returns a compiled program as bytes, or nil if the plugin can't serialize it.
func serialize(executable unsafe.Pointer) []byte {
	var args C.gb_pjrt_serialize_args
	if C.gb_serialize(executable, &args) == 0 {
		return nil
	}
	defer C.gb_serialize_done(&args)
	return bytes.Clone(bytesOf(args.bytes, args.bytes_size))
}

// bytesOf returns C's memory as a slice.
func bytesOf(data *C.char, size C.size_t) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(data)), int(size))
}

// moduleName returns the name of a program, for people.
func moduleName(program []byte) string {
	_, rest, _ := strings.Cut(string(program[:min(len(program), 200)]), "module @")
	name, _, _ := strings.Cut(rest, " ")
	return name
}
