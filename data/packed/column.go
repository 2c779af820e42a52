package packed

import (
	"fmt"
	"math"
	"slices"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
)

// column is an input or a label.
type column struct {
	Type  string `json:"type"`
	Shape []int  `json:"shape"` // Without the axis of the batch.
	// Bytes says that the float32 values from 0 to 1 are stored as bytes from 0 to 255.
	Bytes bool `json:"bytes,omitempty"`
}

// columnOf describes a tensor of a batch.
func columnOf(t *tensors.Tensor, asBytes bool) (column, error) {
	shape := t.Shape()
	if shape.DType.Bits()%8 != 0 || shape.DType.Bits() == 0 {
		return column{}, fmt.Errorf("%s: values smaller than a byte can't be written", shape)
	}
	return column{Type: shape.DType.String(), Shape: slices.Clone(shape.Dimensions[1:]), Bytes: asBytes && shape.DType == dtypes.Float32}, nil
}

func (c column) dtype() dtypes.DType { return dtypes.MapOfNames[c.Type] }

// values is the number of values of an example.
func (c column) values() int {
	n := 1
	for _, d := range c.Shape {
		n *= d
	}
	return n
}

// stored is the number of bytes of an example in a file.
func (c column) stored() int {
	if c.Bytes {
		return c.values()
	}
	return c.values() * c.dtype().Bits() / 8
}

// check refuses a column of a damaged head.
func (c column) check() error {
	if bits := c.dtype().Bits(); bits == 0 || bits%8 != 0 || c.Bytes && c.dtype() != dtypes.Float32 {
		return fmt.Errorf("a column of type %q", c.Type)
	}
	n := 1
	for _, d := range c.Shape {
		if d < 0 || d > 0 && n > math.MaxInt32/d {
			return fmt.Errorf("a column of shape %v", c.Shape)
		}
		n *= d
	}
	return nil
}

// make returns a tensor for n examples.
func (c column) make(n int) *tensors.Tensor {
	return tensors.FromShape(shapes.Make(c.dtype(), append([]int{n}, c.Shape...)...))
}

// appendBytes appends values as bytes.
func appendBytes(to []byte, values []float32) ([]byte, error) {
	for i, value := range values {
		if !(value >= 0 && value <= 1) {
			return nil, fmt.Errorf("value %d is %g: with Config.Bytes, values must be from 0 to 1: normalize later, by data.Augment, or leave Bytes off", i, value)
		}
		to = append(to, byte(value*255+0.5))
	}
	return to, nil
}

// expand writes bytes as values from 0 to 1.
func expand(to []float32, from []byte) {
	to = to[:len(from)]
	for i, b := range from {
		to[i] = fraction[b]
	}
}

// fraction has n/255 for each byte: the value that package data gives to a pixel.
var fraction = func() (values [256]float32) {
	for i := range values {
		values[i] = float32(i) / 255
	}
	return values
}()
