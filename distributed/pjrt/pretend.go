package pjrt

/*
#include <stdlib.h>
#include "clients.h"
#include "plugin.h"
*/
import "C"

import (
	"bytes"
	"unsafe"
)

// Step is a program as XLA's clients on the GPUs of all ranks would compile it.
type Step struct {
	Program []byte // Program is StableHLO as text.
	Options []byte // Options is a CompileOptionsProto with a replica, or a part, on each of the devices 0 to n-1.
}

// Pretence is a process that pretends to be one of several ranks, of which the others don't exist.
type Pretence struct {
	Ranks int
	// Take gets the programs with collectives. They are not compiled here: it ends the process, or
	// its error is that of the compilation.
	Take func(Step) error
	// Updates is called when a program without collectives runs that changes floating-point
	// variables, with how often it has. Several goroutines may call it at once.
	Updates func(program string, times int)
	// Divided reports whether a program without collectives, but for several devices of this
	// process, is to be taken too. Nil takes none.
	Divided func() bool
}

// Pretend begins a pretence: programs with collectives get those that XLA has for GPUs. The plugin
// must have been loaded. Another pretence takes the place of the first.
func Pretend(platform string, p Pretence) error {
	mu.Lock()
	defer mu.Unlock()
	if err := checkLoaded(platform); err != nil {
		return err
	}
	if !isPretended(theLowering) {
		if err := checkWorld(p.Ranks); err != nil {
			return err
		}
	}
	setWorld(pretended{Pretence: p, updates: &updates{of: map[unsafe.Pointer]*program{}}}, p.Ranks)
	C.gb_clients_pretend()
	return nil
}

// pretended is the lowering of a process whose other ranks don't exist.
type pretended struct {
	native
	Pretence
	*updates
}

func (p pretended) options(_ unsafe.Pointer, program, given []byte) ([]byte, error) {
	if len(collectivesOf(program)) == 0 {
		return given, nil
	}
	devices := make([]int64, p.Ranks)
	for i := range devices {
		devices[i] = int64(i)
	}
	return replicate(given, devices), nil
}

func isPretended(l lowering) bool {
	_, ok := l.(pretended)
	return ok
}

// taken hands a program over that is not to be compiled here. It reports whether it has.
func taken(args *C.gb_pjrt_compile_args) (failure *C.gb_pjrt_error, ok bool) {
	l, _ := world()
	p, ok := l.(pretended)
	program := bytesOf(args.program.code, args.program.code_size)
	options := bytesOf(args.compile_options, args.compile_options_size)
	if !ok || len(collectivesOf(program)) == 0 && !p.takesDivided(program) {
		return nil, false
	}
	if err := p.Take(Step{Program: bytes.Clone(program), Options: bytes.Clone(options)}); err != nil {
		return C.gb_error(C.CString(err.Error())), true
	}
	return C.gb_error(C.CString("gonbatch: the program was not compiled: this process only pretends to have other ranks")), true
}

// takesDivided reports whether a program without collectives is to be taken.
func (p pretended) takesDivided(program []byte) bool {
	return p.Divided != nil && partitionsOf(headOf(program)) > 1 && p.Divided()
}
