package pjrt

/*
#include "kernels.h"
*/
import "C"

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"unsafe"
)

// Kernels are C functions that compute convolutions and products of matrices for XLA. Their C type
// is
//
//	int (*)(const int64_t *form, int64_t length, const float *a, const float *b, float *out,
//	        char *error, size_t error_size)
//
// The form is a convolution or product of this package, as numbers. The function returns 0, or
// another number and a zero-terminated text in error. XLA calls it from any of its threads. If out
// is NULL, so are a and b, and it returns 0 if it can compute this form fast.
//
// Columns has the same type: it adds up the rows of a matrix, a, and doesn't use b. Adam has the
// type gb_adam of kernels.h, and TrainedProduct, which needs Adam, gb_trained_product. XLA computes
// what has no kernel.
type Kernels struct{ Convolution, Product, Columns, Adam, TrainedProduct unsafe.Pointer }

// The names of the custom calls. A change of the forms needs another name, because compiled
// programs are cached.
const (
	convolutionTarget = "gonbatch_convolution_2"
	productTarget     = "gonbatch_product_3"
	columnsTarget     = "gonbatch_columns"
	adamTarget        = "gonbatch_adam"
	trainedTarget     = "gonbatch_trained_product"
	adamPartTarget    = "gonbatch_adam_part"
	trainedPartTarget = "gonbatch_trained_product_part"
)

// kernelsOn reports whether programs use kernels, and optional which of those that can be missing.
// The lock protects them.
var (
	kernelsOn bool
	optional  struct{ columns, adam, trained bool }
)

// RegisterKernels makes the programs that are compiled from now on use kernels where these are
// faster than XLA. The plugin must be loaded.
func RegisterKernels(platform string, k Kernels) error {
	mu.Lock()
	defer mu.Unlock()
	path, ok := loaded[platform]
	if !ok {
		return fmt.Errorf("pjrt: no XLA plugin is loaded for %q: call Load first", platform)
	}
	name, ok := ffiPlatform[platform]
	if !ok {
		return fmt.Errorf("pjrt: kernels can't reach the memory of %q", platform)
	}
	if kernelsOn {
		return nil
	}
	handlers := map[string]unsafe.Pointer{
		convolutionTarget: C.gb_convolution_handler(C.gb_kernel(k.Convolution)),
		productTarget:     C.gb_product_handler(C.gb_kernel(k.Product)),
		columnsTarget:     C.gb_columns_handler(C.gb_kernel(k.Columns)),
		adamTarget:        C.gb_adam_handler(C.gb_adam(k.Adam)),
		trainedTarget:     C.gb_trained_product_handler(C.gb_trained_product(k.TrainedProduct)),
		adamPartTarget:    C.gb_adam_part_handler(),
		trainedPartTarget: C.gb_trained_product_part_handler(),
	}
	optional.columns, optional.adam, optional.trained = k.Columns != nil, k.Adam != nil, k.TrainedProduct != nil
	for target, handler := range handlers {
		if err := registerHandler(target, name, handler); err != nil {
			return fmt.Errorf("pjrt: the XLA plugin %s can't run kernels: %w", path, err)
		}
	}
	kernelsOn = true
	return nil
}

// WithoutAdam leaves the updates of variables to XLA, in the programs that are compiled from now
// on.
func WithoutAdam() {
	mu.Lock()
	defer mu.Unlock()
	optional.adam = false
}

// kernelCalls counts the operations that were replaced in all programs of this process.
var kernelCalls atomic.Int64

// KernelCalls returns how many operations of this process's programs kernels compute.
func KernelCalls() int { return int(kernelCalls.Load()) }

// HasKernels reports whether kernels compute for the programs that are compiled from now on.
func HasKernels() bool {
	mu.Lock()
	defer mu.Unlock()
	return kernelsOn && callsCustom()
}

// useKernels replaces operations of a program (text form) with kernels. It returns how many.
func useKernels(module string) (string, int) {
	if !HasKernels() {
		return module, 0
	}
	return withKernels(module)
}

// severalPartitions matches a program that XLA divides among the devices of a process.
var severalPartitions = regexp.MustCompile(`stablehlo\.num_partitions = ([2-9]|1\d)`)

// withKernels replaces the convolutions and products that a kernel computes faster.
func withKernels(module string) (string, int) {
	var devices *perDevice
	if severalPartitions.MatchString(module) {
		if devices = perDeviceOf(module); devices == nil {
			return module, 0
		}
	}
	module, convolutions := replaceOperations(module, "convolution", devices.convolutionCall)
	module, products := withProducts(module, devices)
	replaced := convolutions + products
	if devices == nil {
		more := 0
		module, more = withOptional(module)
		replaced += more
		module = orderProducts(module)
		module = withTrained(module)
		module = withParts(module)
	}
	kernelCalls.Add(int64(replaced))
	return module, replaced
}

// withOptional replaces what the optional kernels compute faster.
func withOptional(module string) (string, int) {
	mu.Lock()
	on := optional
	mu.Unlock()
	sums, updates := 0, 0
	if on.columns {
		module, sums = withColumns(module)
	}
	if on.adam {
		module, updates = withAdam(module)
	}
	return module, sums + updates
}

// operation is a statement of a program with two operands, a and b, in the form that go-xla writes.
type operation struct {
	indent, name, a, b string
	attributes         string
	aType, bType, out  string // For example tensor<8x8xf32>.
}

// operationPattern matches an operation:
//
//	%2 = "stablehlo.NAME"(%0, %1) {
//	  ...
//	} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
func operationPattern(name string) pattern {
	return startPattern(`"stablehlo.`+name+`"(`, `( *)(%\w+) = "stablehlo\.`+name+`"\((%\w+), (%\w+)\) \{([^{}]*)\} : \((tensor<[^<>]*>), (tensor<[^<>]*>)\) -> (tensor<[^<>]*>)`)
}

var operationPatterns = map[string]pattern{
	"convolution": operationPattern("convolution"),
	"dot_general": operationPattern("dot_general"),
}

func asOperation(m []string) operation {
	return operation{indent: m[1], name: m[2], a: m[3], b: m[4], attributes: m[5], aType: m[6], bType: m[7], out: m[8]}
}

// replaceOperations replaces the operations for which call returns a statement.
func replaceOperations(module, name string, call func(operation) (string, bool)) (string, int) {
	return operationPatterns[name].replace(module, func(m []string) (string, bool) { return call(asOperation(m)) })
}

// kernelCall writes a custom call that computes o's result by a kernel.
func (o operation) kernelCall(target string, form []int) string {
	constant := "%gonbatch_form_" + strings.TrimPrefix(o.name, "%")
	formType := fmt.Sprintf("tensor<%dxi64>", len(form))
	return fmt.Sprintf("%[1]s%[2]s = stablehlo.constant dense<%[3]s> : %[4]s\n"+
		"%[1]s%[5]s = stablehlo.custom_call @%[6]s(%[7]s, %[8]s, %[2]s) {api_version = 4 : i32, has_side_effect = false, backend_config = {}} : (%[9]s, %[10]s, %[4]s) -> %[11]s",
		o.indent, constant, strings.Join(strings.Fields(fmt.Sprint(form)), ", "), formType, o.name, target, o.a, o.b, o.aType, o.bType, o.out)
}

// numbersAttribute returns the numbers of an attribute such as `rhs_dilation = array<i64: 1, 1>`.
func (o operation) numbersAttribute(name string) []int {
	_, rest, ok := strings.Cut(o.attributes, name+" = ")
	if !ok {
		return nil
	}
	if line, _, ok := strings.Cut(rest, "\n"); ok {
		rest = line
	}
	// A type after the value has numbers too.
	rest, _, _ = strings.Cut(rest, " : ")
	return numbersIn(strings.TrimPrefix(rest, "array<i64: "))
}

var aNumber = regexp.MustCompile(`-?\d+`)

func numbersIn(text string) []int {
	var all []int
	for _, digits := range aNumber.FindAllString(text, -1) {
		n, err := strconv.Atoi(digits)
		if err != nil {
			return nil
		}
		all = append(all, n)
	}
	return all
}

var floatTensor = regexp.MustCompile(`^tensor<((?:[1-9]\d*x)+)f32>$`)

// dimensionsOf returns the dimensions of a float32 tensor without a dimension of 0. It returns nil
// for all others.
func dimensionsOf(tensor string) []int {
	m := floatTensor.FindStringSubmatch(tensor)
	if m == nil {
		return nil
	}
	return numbersIn(m[1])
}
