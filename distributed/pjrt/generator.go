package pjrt

// #include "frame.h"
import "C"

import (
	"strings"
	"unsafe"

	"gonbatch/distributed/stablehlo"
)

// generatorTarget is the name of the custom call for random bits.
const generatorTarget = "gonbatch_random_bits_1"

// generatorOn reports whether programs use the custom call. The lock protects it.
var generatorOn bool

// RegisterGenerator makes the programs that are compiled from now on generate random bits by a
// function of this package. The bits are the same as XLA's, and take it a fraction of the time: XLA
// computes every step of the generator (Philox) for all numbers before the next one. The plugin
// must be loaded.
func RegisterGenerator(platform string) error {
	mu.Lock()
	defer mu.Unlock()
	if generatorOn {
		return nil
	}
	err := registerHandlers(platform, "the generator", map[string]unsafe.Pointer{generatorTarget: C.gb_generator_call})
	generatorOn = err == nil
	return err
}

// useGenerator replaces the operations of a program that generate random bits. It returns how many.
// As withKernels, it leaves programs for several devices as they are.
func useGenerator(m *stablehlo.Module) (replaced int) {
	mu.Lock()
	on := generatorOn && callsCustom()
	mu.Unlock()
	if !on || partitionsOf(m.Head()) > 1 {
		return 0
	}
	for _, b := range m.Blocks() {
		b.Replace(func(o *stablehlo.Op) []*stablehlo.Op {
			if !isPhilox(o) {
				return nil
			}
			replaced++
			return []*stablehlo.Op{stablehlo.CustomCall(generatorTarget, false, nil, []stablehlo.Value{o.Operand(0)}, resultsOf(o)...)}
		})
	}
	return replaced
}

// isPhilox reports whether an operation generates random bits as the custom call does.
func isPhilox(o *stablehlo.Op) bool {
	const state = "tensor<3xui64>"
	if o.Name != "stablehlo.rng_bit_generator" || !strings.Contains(o.Attributes, "rng_algorithm PHILOX>") || len(o.Out) != 2 || o.Types[0] != state || o.Out[0] != state {
		return false
	}
	_, element, _ := stablehlo.Tensor(o.Out[1])
	return element == "ui32" || element == "ui64"
}

// callsCustom reports whether programs may have custom calls: those that XLA compiles for other
// machines may not. The lock is held.
func callsCustom() bool {
	_, own := theLowering.(customCall)
	return own || theLowering == nil
}
