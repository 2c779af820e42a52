package pjrt

/*
#include <stdlib.h>
#include "abi.h"
#include "trace.h"
*/
import "C"

import (
	"fmt"
	"unsafe"

	"gonbatch/internal/plural"
)

// Operation is what a custom call did in a compiled program: all that the program does by other
// code than XLA's.
type Operation struct {
	Kind OperationKind `json:"kind"`
	// Name says what it did, such as "convolution 64x28x28x32 -> 64x14x14x64, 3x3, stride 2".
	Name   string `json:"name"`
	Begin  int64  `json:"begin"` // Nanoseconds since 1970.
	End    int64  `json:"end"`
	Thread int    `json:"thread"` // The kernel's number of the thread.
	// Grouped means that the collective is one of each of several groups of ranks.
	Grouped bool `json:"grouped,omitempty"`
}

// OperationKind is the kind of an operation. The numbers are those of trace.h.
type OperationKind int

// The kinds of operations.
const (
	Convolution OperationKind = iota + 1
	Product
	RandomBits
	WholeCollective // One that stops the program.
	StartOfSum      // The start of a sum that travels while the program computes.
	WaitForSum      // The wait for its end, or for that of all.
	TravellingSum   // Its way, on a thread of its own.
	ColumnSums      // A sum over the rows of a matrix.
	AdamUpdate      // The update of a variable by Adam or AdamW.
	TrainedProduct  // An AdamUpdate, and the product that is its gradient.
)

// StartTrace begins to record the operations of this process: the first ones, at most that many. It
// discards a recording that is on.
func StartTrace(most int) { C.gb_trace_start(C.int64_t(most)) }

// StopTrace ends the recording. It returns the operations in the order of their ends, and how many
// more there were.
func StopTrace() (all []Operation, lost int) {
	var c *C.gb_operation
	var more C.int64_t
	n := C.gb_trace_stop(&c, &more)
	defer C.free(unsafe.Pointer(c))
	for _, o := range unsafe.Slice(c, int(n)) {
		all = append(all, operationOf(o))
	}
	return all, int(more)
}

// numbers are those of an operation: see trace.h.
type numbers = [C.GB_TRACE_NUMBERS]C.int64_t

func operationOf(c C.gb_operation) Operation {
	o := Operation{Kind: OperationKind(c.kind), Begin: int64(c.begin), End: int64(c.end), Thread: int(c.thread)}
	switch o.Kind {
	case Convolution:
		o.Name = nameOfConvolution(c.numbers)
	case Product:
		o.Name = nameOfProduct(c.numbers)
	case RandomBits:
		o.Name = "random bits, " + bytesText(int64(c.numbers[0]))
	case ColumnSums:
		o.Name = fmt.Sprintf("sums of the columns of %dx%d", c.numbers[0], c.numbers[1])
	case AdamUpdate:
		o.Name = fmt.Sprintf("Adam's update of %d weights", c.numbers[0])
	case TrainedProduct:
		o.Name = fmt.Sprintf("%s, and Adam's update of %d weights", nameOfProduct(c.numbers), c.numbers[1]*c.numbers[2])
	default:
		o.Name = nameOfCollective(o.Kind, c.numbers)
		o.Grouped = c.numbers[4] > 0
	}
	return o
}

// nameOfConvolution names the forward convolution, for its gradients too.
func nameOfConvolution(n numbers) string {
	name := fmt.Sprintf("convolution %dx%dx%dx%d -> %dx%dx%dx%d, %dx%d", n[1], n[2], n[3], n[4], n[1], n[5], n[6], n[7], n[8], n[9])
	if n[10] != 1 || n[11] != 1 {
		name += fmt.Sprintf(", stride %d", n[10])
		if n[10] != n[11] {
			name += fmt.Sprintf("x%d", n[11])
		}
	}
	return map[C.int64_t]string{backwardData: "gradient of images: ", backwardWeights: "gradient of weights: "}[n[0]] + name
}

func nameOfProduct(n numbers) string {
	name := fmt.Sprintf("%dx%d by %dx%d", n[1], n[3], n[3], n[2])
	if n[0] != 1 {
		return plural.Of(int(n[0]), "product") + " " + name
	}
	return "product " + name
}

func nameOfCollective(kind OperationKind, n numbers) string {
	name := op(n[0]).String()
	if kind == WaitForSum && n[1] == 0 {
		return "wait for all travelling sums"
	}
	element := elements[n[2]]
	name += fmt.Sprintf(" %s %s", bytesText(int64(n[1])*element.bytes), element.name)
	if op(n[0]).reduces() {
		name += ", " + Reduction(n[3]).String()
	}
	switch kind {
	case StartOfSum:
		return "start " + name
	case WaitForSum:
		return "wait for " + name
	}
	return name
}

// elements are the element types of collectives, by their xla::PrimitiveType.
var elements = map[C.int64_t]struct {
	name  string
	bytes int64
}{
	C.GB_FFI_S32: {"int32", 4}, C.GB_FFI_S64: {"int64", 8}, C.GB_FFI_U8: {"uint8", 1}, C.GB_FFI_F16: {"float16", 2}, C.GB_FFI_BF16: {"bfloat16", 2},
	C.GB_FFI_F32: {"float32", 4}, C.GB_FFI_F64: {"float64", 8},
}

// bytesText returns a number of bytes as text, such as "1.0 MiB".
func bytesText(n int64) string {
	switch {
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d B", n)
}
