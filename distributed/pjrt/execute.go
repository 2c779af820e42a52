package pjrt

/*
#include <stdlib.h>
#include "clients.h"
#include "keep.h"
#include "plugin.h"
*/
import "C"

import (
	"errors"
	"unsafe"
)

// withOptions replaces the options of a compilation with those that the lowering needs. The
// returned function restores the caller's options.
func withOptions(args *C.gb_pjrt_compile_args) (restore func(), failure *C.gb_pjrt_error) {
	l, _ := world()
	if l == nil {
		return func() {}, nil
	}
	program := bytesOf(args.program.code, args.program.code_size)
	options, err := l.options(args.client, program, bytesOf(args.compile_options, args.compile_options_size))
	if err != nil {
		return nil, C.gb_error(C.CString("gonbatch: " + err.Error()))
	}
	before, size := args.compile_options, args.compile_options_size
	changed := (*C.char)(C.CBytes(options))
	args.compile_options, args.compile_options_size = changed, C.size_t(len(options))
	return func() {
		args.compile_options, args.compile_options_size = before, size
		C.free(unsafe.Pointer(changed))
	}, nil
}

// remember records the collectives of a program that was compiled or loaded.
func remember(args *C.gb_pjrt_compile_args) {
	if l, _ := world(); isPretended(l) {
		l.(pretended).compiled(args.executable, bytesOf(args.program.code, args.program.code_size))
	}
	p := theProcesses.Load()
	if p == nil {
		return
	}
	if all := collectivesOf(bytesOf(args.program.code, args.program.code_size)); len(all) > 0 {
		p.mu.Lock()
		p.programs[args.executable] = all
		p.mu.Unlock()
	}
}

//export gonbatchProgramEnded
func gonbatchProgramEnded(executable unsafe.Pointer) {
	p := theProcesses.Load()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.programs, executable)
}

// gonbatchExecute is called by clients.c instead of the plugin's function. It waits until the
// program ends, as go-xla does anyway, so that the watch knows how long the ranks wait for one
// another.
//
//export gonbatchExecute
func gonbatchExecute(args *C.gb_pjrt_execute_args) *C.gb_pjrt_error {
	leave := theProcesses.Load().enter(args.executable)
	var text [errorSize]C.char
	err := C.gb_execute(args, &text[0], errorSize)
	var failure error
	if text[0] != 0 {
		failure = errors.New(C.GoString(&text[0]))
	}
	leave(failure)
	return err
}

// enter records that a program begins, with all of its collectives.
func (p *processes) enter(executable unsafe.Pointer) (leave func(error)) {
	p.mu.Lock()
	all := p.programs[executable]
	p.mu.Unlock()
	if p.Enter == nil || len(all) == 0 {
		return func(error) {}
	}
	leaves := make([]func(error) error, len(all))
	for i, c := range all {
		leaves[i] = p.Enter(int(c.op), c.dtype, c.count, c.detail)
	}
	return func(failure error) {
		for _, leave := range leaves {
			_ = leave(failure)
			failure = nil // Report it only once.
		}
	}
}
