package pjrt

/*
#include "kernels.h"
*/
import "C"

import (
	"bytes"
	"slices"
	"strings"
	"sync/atomic"
	"unsafe"

	"gonbatch/distributed/stablehlo"
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
	if kernelsOn {
		return nil
	}
	C.gb_set_kernels(C.gb_kernel(k.Convolution), C.gb_kernel(k.Product), C.gb_kernel(k.Columns), C.gb_adam(k.Adam), C.gb_trained_product(k.TrainedProduct))
	optional.columns, optional.adam, optional.trained = k.Columns != nil, k.Adam != nil, k.TrainedProduct != nil
	err := registerHandlers(platform, "kernels", map[string]unsafe.Pointer{
		convolutionTarget: C.gb_convolution_call, productTarget: C.gb_product_call, columnsTarget: C.gb_columns_call,
		adamTarget: C.gb_adam_call, adamPartTarget: C.gb_adam_part_call,
		trainedTarget: C.gb_trained_product_call, trainedPartTarget: C.gb_trained_product_part_call,
	})
	kernelsOn = err == nil
	return err
}

// WithoutAdam leaves the updates of variables to XLA, in the programs that are compiled from now
// on.
func WithoutAdam() {
	mu.Lock()
	defer mu.Unlock()
	optional.adam = false
}

// kernelCallsMade counts the operations that were replaced in all programs of this process.
var kernelCallsMade atomic.Int64

// KernelCalls returns how many operations of this process's programs kernels compute.
func KernelCalls() int { return int(kernelCallsMade.Load()) }

// HasKernels reports whether kernels compute for the programs that are compiled from now on.
func HasKernels() bool {
	mu.Lock()
	defer mu.Unlock()
	return kernelsOn && callsCustom()
}

// useKernels replaces operations of a program with kernels. It returns how many.
func useKernels(m *stablehlo.Module) int {
	if !HasKernels() {
		return 0
	}
	return withKernels(m)
}

// partitionsOf returns among how many devices of a process XLA divides a program, by what is before
// its functions.
func partitionsOf(head string) int { return numberIn(head, "num_partitions") }

// numberIn returns the number of an attribute of a program; 1 if it has none.
func numberIn(head, attribute string) int {
	_, rest, _ := strings.Cut(head, "stablehlo."+attribute+" = ")
	if all := stablehlo.Numbers(rest); len(all) > 0 {
		return all[0]
	}
	return 1
}

// headOf returns the first line of a program, which has its attributes.
func headOf(program []byte) string {
	head, _, _ := bytes.Cut(program, []byte("\n"))
	return string(head)
}

// withKernels replaces what a kernel computes faster.
func withKernels(m *stablehlo.Module) int {
	var devices *perDevice
	if partitionsOf(m.Head()) > 1 {
		if devices = perDeviceOf(m); devices == nil {
			return 0
		}
	}
	k := &kernelCalls{devices: devices, products: map[*stablehlo.Op]product{}}
	for _, b := range m.Blocks() {
		k.replaceIn(b)
	}
	if f, ok := flowOf(m); ok && devices == nil {
		k.improve(f)
	}
	kernelCallsMade.Add(int64(k.replaced))
	return k.replaced
}

// kernelCalls replaces operations of a program.
type kernelCalls struct {
	devices  *perDevice                // nil: one.
	products map[*stablehlo.Op]product // By the calls of the kernel.
	replaced int
}

// replaceIn replaces the convolutions and products of a block.
func (k *kernelCalls) replaceIn(b *stablehlo.Block) {
	transposed := map[*stablehlo.Op][]*stablehlo.Op{} // Transpositions of products, and what replaces them.
	for i, o := range b.Ops {
		if o.Name == "stablehlo.dot_general" && i+1 < len(b.Ops) {
			if ops := k.transposition(o, b.Ops[i+1]); ops != nil {
				transposed[b.Ops[i+1]] = ops
			}
		}
	}
	b.Replace(func(o *stablehlo.Op) []*stablehlo.Op {
		var ops []*stablehlo.Op
		switch o.Name {
		case "stablehlo.convolution":
			ops = k.devices.convolution(o)
		case "stablehlo.dot_general":
			ops = k.product(o)
		default:
			return transposed[o]
		}
		if ops != nil {
			k.replaced++
		}
		return ops
	})
}

// improve replaces what the optional kernels compute faster.
func (k *kernelCalls) improve(f *flow) {
	mu.Lock()
	on := optional
	mu.Unlock()
	if on.columns {
		k.replaced += sumColumns(f)
	}
	if on.adam {
		k.replaced += updateByAdam(f)
	}
	if orderProducts {
		f.order()
	}
	if on.trained {
		k.train(f)
	}
	f.updateParts()
}

// kernelCall returns the call of a kernel for a and b, and its form.
func kernelCall(target string, form []int, a, b, out stablehlo.Value) []*stablehlo.Op {
	constant := constantForm(own("form", out.Name), form)
	return []*stablehlo.Op{constant, stablehlo.CustomCall(target, false, nil, []stablehlo.Value{a, b, resultOf(constant)}, out)}
}

// dimensionsOf returns the dimensions of a float32 tensor without a dimension of 0. It returns nil
// for all others.
func dimensionsOf(tensor string) []int {
	dimensions, element, _ := stablehlo.Tensor(tensor)
	if element != "f32" || slices.Contains(dimensions, 0) {
		return nil
	}
	return dimensions
}

// resultOf returns the only result of an operation.
func resultOf(o *stablehlo.Op) stablehlo.Value {
	return stablehlo.Value{Name: o.Results[0], Type: o.Out[0]}
}
