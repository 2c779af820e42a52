package pjrt

import (
	"fmt"
	"strings"
	"unsafe"
)

// lowering turns the collectives of a graph into a part of a program that XLA compiles. There are
// two: a custom call, which the transport of package mpi or tcp runs, and XLA's own collective.
type lowering interface {
	// body returns the body of a function that replaces a placeholder: the collective.
	body(p parameters) string
	// options returns the options with which a client compiles a program, derived from those of
	// go-xla.
	options(client unsafe.Pointer, program, given []byte) ([]byte, error)
	// overlaps reports whether XLA computes during a collective.
	overlaps() bool
}

// parameters describe a function that becomes a collective.
type parameters struct {
	does
	ranks int
	// name is the function's name.
	name string
	// x is the rank's value. after is available only when the previous collective of the program
	// has ended.
	x, xType         string
	after, afterType string
	resultType       string
}

// customCall is the lowering for a transport. XLA may run independent calls in any order, so each
// takes `after` as an operand.
type customCall struct{}

func (customCall) body(p parameters) string {
	if p.part == start || p.part == finish {
		return p.halfBody()
	}
	alias := ""
	if p.op == allReduce || p.op == broadcast || p.part == inPlace { // It needs no memory besides its operand's.
		alias = ", output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 0, operand_tuple_indices = []>]"
	}
	target, constant, operand, operandType := p.target(p.ranks), "", "", ""
	if !p.plain() {
		form := p.form()
		target, operand, operandType = formTarget(p.ranks), ", %form", fmt.Sprintf(", tensor<%dxi64>", len(form))
		constant = fmt.Sprintf("\n    %%form = stablehlo.constant dense<[%s]> : tensor<%dxi64>", strings.Join(texts(form), ", "), len(form))
	}
	return constant + "\n    %result = stablehlo.custom_call @" + target + "(" + p.x + ", " + p.after + operand + ") {api_version = 4 : i32, has_side_effect = true, backend_config = {}" + alias + "}" +
		" : (" + p.xType + ", " + p.afterType + operandType + ") -> " + p.resultType +
		"\n    return %result : " + p.resultType + "\n  }"
}

func (customCall) options(_ unsafe.Pointer, _, given []byte) ([]byte, error) { return given, nil }

func (customCall) overlaps() bool { return false }

// Overlaps reports whether a program of this process continues computing during a collective:
// XLA's own does, and a custom call doesn't.
func Overlaps() bool {
	l, _ := world()
	return l != nil && l.overlaps()
}

// checkWorld refuses a change of the number of ranks: a process has only one world. The lock is
// held.
func checkWorld(size int) error {
	if ranks != 0 && ranks != size {
		return fmt.Errorf("pjrt: collectives over %d ranks: this process already has collectives over %d", size, ranks)
	}
	return nil
}

// setWorld sets the lowering and the number of ranks of this process. The lock is held.
func setWorld(l lowering, size int) { theLowering, ranks = l, size }

func world() (lowering, int) {
	mu.Lock()
	defer mu.Unlock()
	return theLowering, ranks
}
