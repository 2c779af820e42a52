package pjrt

import (
	"fmt"
	"strings"
	"unsafe"

	"gonbatch/distributed/stablehlo"
)

// lowering turns the collectives of a graph into a part of a program that XLA compiles. There are
// two: a custom call, which the transport of package mpi or tcp runs, and XLA's own collective.
type lowering interface {
	// body returns the body of a function that replaces a placeholder: the collective.
	body(p parameters) []*stablehlo.Op
	// options returns the options with which a client compiles a program, derived from those of
	// go-xla.
	options(client unsafe.Pointer, program, given []byte) ([]byte, error)
	// overlaps reports whether XLA computes during a collective.
	overlaps() bool
}

// parameters describe a function that becomes a collective.
type parameters struct {
	placeholder
	// x is the rank's value. after is available only when the previous collective of the program
	// has ended.
	x, after stablehlo.Value
	results  []string // Their types.
	first    bool     // No collective of the program comes before.
}

// customCall is the lowering for a transport. XLA may run independent calls in any order, so each
// takes `after` as an operand.
type customCall struct{}

func (customCall) body(p parameters) []*stablehlo.Op {
	if p.part == start || p.part == finish {
		return p.halfBody()
	}
	form := constantForm("%form", p.form())
	var inPlaceOf []int
	if p.inPlace() {
		inPlaceOf = []int{0}
	}
	result := stablehlo.Value{Name: "%result", Type: p.results[0]}
	call := stablehlo.CustomCall(collectiveTarget(p.ranks), true, inPlaceOf, []stablehlo.Value{p.x, p.after, resultOf(form)}, result)
	return []*stablehlo.Op{form, call, stablehlo.Return(result)}
}

// constantForm returns a constant with the numbers that tell a custom call what to do.
func constantForm(name string, form []int) *stablehlo.Op {
	return stablehlo.Constant(stablehlo.Value{Name: name, Type: stablehlo.TensorOf("i64", len(form))}, "["+strings.Join(texts(form), ", ")+"]")
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
