package trainer

import (
	"fmt"
	"slices"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
)

// TorchLinear converts the weight of PyTorch's Linear, [out, in], to that of GoMLX's layers.Dense,
// [in, out].
func TorchLinear(t *tensors.Tensor) (*tensors.Tensor, error) {
	if t.Rank() != 2 {
		return nil, fmt.Errorf("TorchLinear: the weight must have the shape [out, in], got %s", t.Shape())
	}
	return permuted(t, 1, 0)
}

// TorchConv converts the weight of PyTorch's Conv1d, Conv2d or Conv3d, [out, in, ...kernel], to
// that of cnn.Convolution and GoMLX's layers.Convolution, [...kernel, in, out].
func TorchConv(t *tensors.Tensor) (*tensors.Tensor, error) {
	if t.Rank() < 3 {
		return nil, fmt.Errorf("TorchConv: the weight must have the shape [out, in, ...kernel], got %s", t.Shape())
	}
	axes := make([]int, t.Rank())
	for i := range axes {
		axes[i] = (i + 2) % t.Rank()
	}
	axes[t.Rank()-2], axes[t.Rank()-1] = 1, 0
	return permuted(t, axes...)
}

// TorchConvTranspose converts the weight of PyTorch's ConvTranspose2d, [in, out, height, width], to
// that of cnn.TransposedConvolution, [height, width, in, out].
func TorchConvTranspose(t *tensors.Tensor) (*tensors.Tensor, error) {
	if t.Rank() != 4 {
		return nil, fmt.Errorf("TorchConvTranspose: the weight must have the shape [in, out, height, width], got %s", t.Shape())
	}
	return permuted(t, 2, 3, 0, 1)
}

// TorchFlattened is the layout of PyTorch's first Linear after the Flatten of images, whose
// channels come first there and last here. Its weight is [out, channels*height*width], and becomes
// [height*width*channels, out].
func TorchFlattened(channels, height, width int) Layout {
	return func(t *tensors.Tensor) (*tensors.Tensor, error) {
		if t.Rank() != 2 || t.Shape().Dimensions[1] != channels*height*width {
			return nil, fmt.Errorf("TorchFlattened: the weight must have the shape [out, %d*%d*%d], got %s", channels, height, width, t.Shape())
		}
		out := t.Shape().Dimensions[0]
		images, err := reshaped(t, out, channels, height, width)
		if err == nil {
			images, err = permuted(images, 2, 3, 1, 0)
		}
		if err != nil {
			return nil, err
		}
		return reshaped(images, channels*height*width, out)
	}
}

// torchCount converts the num_batches_tracked of PyTorch's BatchNorm, an int64, to the counts of
// GoMLX's layer, one for each channel.
func torchCount(channels int) Layout {
	return func(t *tensors.Tensor) (*tensors.Tensor, error) {
		if t.Size() != 1 || t.DType() != dtypes.Int64 {
			return nil, fmt.Errorf("num_batches_tracked must be an Int64, got %s", t.Shape())
		}
		count, err := tensors.CopyFlatData[int64](t)
		if err != nil {
			return nil, err
		}
		return tensors.FromFlatDataAndDimensions(slices.Repeat([]float32{float32(count[0])}, channels), channels), nil
	}
}

// reshaped returns a copy of a tensor with other dimensions.
func reshaped(t *tensors.Tensor, dims ...int) (*tensors.Tensor, error) {
	other := tensors.FromShape(shapes.Make(t.DType(), dims...))
	return other, convertBytes(t, other, func(from, to []byte) { copy(to, from) })
}

// permuted returns a copy of a tensor, whose axis i is the tensor's axis axes[i].
func permuted(t *tensors.Tensor, axes ...int) (*tensors.Tensor, error) {
	strides := t.Shape().Strides()
	dims := make([]int, len(axes))
	for i, axis := range axes {
		dims[i] = t.Shape().Dimensions[axis]
	}
	other := tensors.FromShape(shapes.Make(t.DType(), dims...))
	size := t.DType().Size()
	return other, convertBytes(t, other, func(from, to []byte) {
		for i, index := range other.Shape().Iter() {
			at := 0
			for place, axis := range axes {
				at += index[place] * strides[axis]
			}
			copy(to[i*size:][:size], from[at*size:])
		}
	})
}

// convertBytes fills a tensor from the memory of another.
func convertBytes(from, to *tensors.Tensor, convert func(from, to []byte)) error {
	if from.Shape().IsZeroSize() {
		return nil
	}
	var writeErr error
	err := from.ConstBytes(func(source []byte) {
		writeErr = to.MutableBytes(func(target []byte) { convert(source, target) })
	})
	if err != nil {
		return err
	}
	return writeErr
}
