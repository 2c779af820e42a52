package pjrt

/*
#include <stdlib.h>
#include "keep.h"
*/
import "C"

import (
	"bytes"
	"errors"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"

	"gonbatch/internal/compilecache"
)

// kept is where compiled programs are kept; nil is nowhere.
var kept atomic.Pointer[compilecache.Cache]

// KeepPrograms keeps the programs that this process compiles from now on, and loads those that are
// there already; nil ends that.
func KeepPrograms(cache *compilecache.Cache) { kept.Store(cache) }

// What this process has compiled itself, and the nanoseconds that it took to compile and to load.
var compilations, compileTime atomic.Int64

// Compilations is the number of programs that this process has compiled itself, and not loaded.
func Compilations() int { return int(compilations.Load()) }

// CompileTime is how long this process has waited for its programs, compiled or loaded.
func CompileTime() time.Duration { return time.Duration(compileTime.Load()) }

// gonbatchCompile is called by plugin.c in place of the plugin's compile, for programs that are
// rewritten already.
//
//export gonbatchCompile
func gonbatchCompile(args *C.gb_pjrt_compile_args) *C.gb_pjrt_error {
	start := time.Now()
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
	_ = cache.Do(key, moduleName(program), load, compile) // It fails as compile does: failure says why.
	return failure
}

var errRefused = errors.New("refused by XLA")

func compileNow(args *C.gb_pjrt_compile_args) *C.gb_pjrt_error {
	compilations.Add(1)
	return C.gb_compile(args)
}

// serialize is a compiled program as bytes; nil if the plugin can't do that.
func serialize(executable unsafe.Pointer) []byte {
	var args C.gb_pjrt_serialize_args
	if C.gb_serialize(executable, &args) == 0 {
		return nil
	}
	defer C.gb_serialize_done(&args)
	return bytes.Clone(bytesOf(args.bytes, args.bytes_size))
}

// bytesOf is C's memory as a slice.
func bytesOf(data *C.char, size C.size_t) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(data)), int(size))
}

// moduleName is the name of a program, for people.
func moduleName(program []byte) string {
	_, rest, _ := strings.Cut(string(program[:min(len(program), 200)]), "module @")
	name, _, _ := strings.Cut(rest, " ")
	return name
}
