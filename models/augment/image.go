package augment

import (
	"fmt"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
)

// checkImages panics if x has no images.
func checkImages(name string, x *graph.Node) {
	if x.Rank() != 4 {
		panic(fmt.Errorf("augment.%s: x has the shape %s; it must be [batch, height, width, channels]: use graph.InsertAxes(x, -1) for images without an axis of channels", name, x.Shape()))
	}
}

// checkValues panics if x has no images with values to compute with.
func checkValues(name string, x *graph.Node) {
	checkImages(name, x)
	checkFloats(name, x)
}

func checkFloats(name string, x *graph.Node) {
	if !x.DType().IsFloat() {
		panic(fmt.Errorf("augment.%s: x has the type %s; it must be floating-point: for bytes from 0 to 255, use graph.DivScalar(graph.ConvertDType(x, dtypes.Float32), 255)", name, x.DType()))
	}
}

// checkFraction panics unless value is from 0 to 1.
func checkFraction(name, what string, value float64) {
	if !(value >= 0 && value <= 1) {
		panic(fmt.Errorf("augment.%s: %s must be from 0 to 1, got %g", name, what, value))
	}
}

// widened returns x in at least single precision, in which all functions compute.
func widened(x *graph.Node) *graph.Node {
	if x.DType().IsHalfPrecision() {
		return graph.ConvertDType(x, dtypes.Float32)
	}
	return x
}

// perImage gives a number for each image, [batch], the rank of images.
func perImage(numbers *graph.Node) *graph.Node {
	return graph.Reshape(numbers, numbers.Shape().Dimensions[0], 1, 1, 1)
}
