package pjrt

/*
#include "generator.h"
*/
import "C"

import (
	"fmt"
	"regexp"
	"strings"
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
	path, ok := loaded[platform]
	if !ok {
		return fmt.Errorf("pjrt: no XLA plugin is loaded for %q: call Load first", platform)
	}
	name, ok := ffiPlatform[platform]
	if !ok {
		return fmt.Errorf("pjrt: random bits can't reach the memory of %q", platform)
	}
	if generatorOn {
		return nil
	}
	if err := registerHandler(generatorTarget, name, C.gb_generator_handler()); err != nil {
		return fmt.Errorf("pjrt: the XLA plugin %s can't run the generator: %w", path, err)
	}
	generatorOn = true
	return nil
}

// randomBits matches a statement that generates random bits, in the form that go-xla writes:
//
//	%1, %2 = "stablehlo.rng_bit_generator"(%0) {
//	  rng_algorithm = #stablehlo<rng_algorithm PHILOX>
//	} : (tensor<3xui64>) -> (tensor<3xui64>, tensor<8x8xui32>)
var randomBits = regexp.MustCompile(`"stablehlo\.rng_bit_generator"\((%\w+)\) \{\s*rng_algorithm = #stablehlo<rng_algorithm PHILOX>\s*\} : (\(tensor<3xui64>\) -> \(tensor<3xui64>, tensor<(?:\d+x)*ui(?:32|64)>\))`)

// useGenerator replaces the statements of a program (text form) that generate random bits. It
// returns how many. As withKernels, it leaves programs for several devices as they are.
func useGenerator(module string) (string, int) {
	mu.Lock()
	on := generatorOn && callsCustom()
	mu.Unlock()
	if !on || !strings.Contains(module, "rng_bit_generator") || severalPartitions.MatchString(module) {
		return module, 0
	}
	found := len(randomBits.FindAllStringIndex(module, -1))
	return randomBits.ReplaceAllString(module, `"stablehlo.custom_call"($1) {
    call_target_name = "`+generatorTarget+`",
    api_version = 4 : i32,
    has_side_effect = false,
    backend_config = {}
  } : $2`), found
}

// callsCustom reports whether programs may have custom calls: those that XLA compiles for other
// machines may not. The lock is held.
func callsCustom() bool {
	_, own := theLowering.(customCall)
	return own || theLowering == nil
}
