package ranktest

import (
	"math/rand/v2"

	"github.com/gomlx/gomlx/core/tensors"
)

// Blobs is a dataset of that many noisy images, [n, Side, Side, 1] float32. The class, [n, 1]
// int32, is the part of the image that is bright. The images are the same in every process.
type Blobs int

// Side is the side of an image, and Classes is the number of classes.
const (
	Side    = 8
	Classes = 4
)

// Name returns the dataset's name.
func (b Blobs) Name() string { return "blobs" }

// Len returns the number of images.
func (b Blobs) Len() int { return int(b) }

// Batch returns the images with these indices, and their classes.
func (b Blobs) Batch(indices []int) (inputs, labels []*tensors.Tensor, err error) {
	images, numbers := make([]float32, 0, len(indices)*Side*Side), make([]int32, 0, len(indices))
	for _, index := range indices {
		rng := rand.New(rand.NewPCG(99, uint64(index)))
		class := rng.IntN(Classes)
		for pixel := range Side * Side {
			value := rng.Float32() * 0.5
			if pixel/(Side*Side/Classes) == class {
				value += 0.5
			}
			images = append(images, value)
		}
		numbers = append(numbers, int32(class))
	}
	return []*tensors.Tensor{tensors.FromFlatDataAndDimensions(images, len(indices), Side, Side, 1)},
		[]*tensors.Tensor{tensors.FromFlatDataAndDimensions(numbers, len(indices), 1)}, nil
}
