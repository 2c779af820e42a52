package checkpoint

import (
	"fmt"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"

	"gonbatch/checkpoint/safetensors"
)

// toFile maps GoMLX's types to the names in safetensors files. Complex numbers of 128 bits, and
// types smaller than a byte, have no name there.
var toFile = map[dtypes.DType]safetensors.DType{
	dtypes.Bool: safetensors.Bool,
	dtypes.Int8: safetensors.I8, dtypes.Int16: safetensors.I16, dtypes.Int32: safetensors.I32, dtypes.Int64: safetensors.I64,
	dtypes.Uint8: safetensors.U8, dtypes.Uint16: safetensors.U16, dtypes.Uint32: safetensors.U32, dtypes.Uint64: safetensors.U64,
	dtypes.Float16: safetensors.F16, dtypes.BFloat16: safetensors.BF16, dtypes.Float32: safetensors.F32, dtypes.Float64: safetensors.F64,
	dtypes.Complex64: safetensors.C64,
}

var fromFile = func() map[safetensors.DType]dtypes.DType {
	all := map[safetensors.DType]dtypes.DType{}
	for ours, theirs := range toFile {
		all[theirs] = ours
	}
	return all
}()

// TensorError reports a tensor that a file can't hold.
type TensorError struct {
	// Path is the variable path of the tensor.
	Path string
	// Reason is a predicate, as in "has been freed".
	Reason string
}

func (e *TensorError) Error() string { return fmt.Sprintf("the variable %s %s", e.Path, e.Reason) }

// fileType returns the description of a variable's shape for a safetensors file.
func fileType(path string, shape shapes.Shape) (safetensors.Tensor, error) {
	if shape.DType == dtypes.InvalidDType {
		return safetensors.Tensor{}, &TensorError{path, "has been freed (by FinalizeAll): free it later, or set it to nil"}
	}
	dtype, ok := toFile[shape.DType]
	if !ok {
		return safetensors.Tensor{}, &TensorError{path, fmt.Sprintf("is %s, and safetensors files can't hold %s: use another type", shape, shape.DType)}
	}
	return safetensors.Tensor{Name: fileName(path), DType: dtype, Shape: shape.Dimensions}, nil
}
