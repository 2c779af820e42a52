package pjrt

import (
	"fmt"
	"unsafe"
)

// lowering is how a collective of a graph becomes part of a program that XLA compiles. There are
// two: a custom call, which the transport of package mpi or tcp answers, and XLA's own collective.
type lowering interface {
	// body is that of a function which stands for an all-reduce: it returns the sum of x over the
	// ranks.
	body(p parameters) string
	// options are those by which a client compiles a program, made of the ones that go-xla gives.
	options(client unsafe.Pointer, program, given []byte) ([]byte, error)
}

// parameters are those of a function that stands for an all-reduce over so many ranks.
type parameters struct {
	ranks int
	// name is the function's.
	name string
	// x is what is summed; after is not known before the previous collective of the program is
	// through.
	x, xType         string
	after, afterType string
}

// customCall is the lowering for a transport. XLA may run independent calls in any order, so each
// has `after` as an operand.
type customCall struct{}

func (customCall) body(p parameters) string {
	return "\n    %reduced = stablehlo.custom_call @" + target(p.ranks) + "(" + p.x + ", " + p.after + ") {api_version = 4 : i32, has_side_effect = true, backend_config = {}, " +
		"output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 0, operand_tuple_indices = []>]}" +
		" : (" + p.xType + ", " + p.afterType + ") -> " + p.xType +
		"\n    return %reduced : " + p.xType + "\n  }"
}

func (customCall) options(_ unsafe.Pointer, _, given []byte) ([]byte, error) { return given, nil }

// checkWorld refuses another number of ranks: a process has one world. The lock is held.
func checkWorld(size int) error {
	if ranks != 0 && ranks != size {
		return fmt.Errorf("pjrt: collectives over %d ranks: this process has collectives over %d already", size, ranks)
	}
	return nil
}

// setWorld makes the lowering, over so many ranks, the one of this process. The lock is held.
func setWorld(l lowering, size int) { theLowering, ranks = l, size }

func world() (lowering, int) {
	mu.Lock()
	defer mu.Unlock()
	return theLowering, ranks
}
