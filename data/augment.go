package data

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/internal/plural"
)

// Image is one image of a batch: its pixels row by row, channels last.
type Image struct {
	Height, Width, Channels int
	Pixels                  []float32
}

// Transform changes an image in place. Outside a training run, random is nil: then a transform that
// depends on it leaves the image unchanged. It may be called concurrently.
type Transform func(im Image, random *rand.Rand) error

// Augment returns ds with the transforms applied to its images, in this order. Images are the first
// input, [n, height, width, channels] float32. The random numbers of an example depend only on the
// seed, the epoch and the example's number in ds. Validations, tests and predictions get the images
// without random changes. If ds is a stream, from FromStream, they depend on the seed and the place
// of the example: its part, its number there and the pass.
//
//	photos = data.Augment(photos, 1, data.RandomCrop(4), data.RandomFlip(0.5), data.Normalize(mean, std))
func Augment(ds Dataset, seed uint64, transforms ...Transform) Dataset {
	if s, ok := ds.(*Streamed); ok {
		return s.changed(func(examples []placed, inputs, labels []*tensors.Tensor) (_, _ []*tensors.Tensor, err error) {
			err = transformAll(inputs, len(examples), transforms, func(row int) *rand.Rand { return examples[row].random(seed) })
			if err != nil {
				return nil, nil, fmt.Errorf("data: augment %s: %w", s.Name(), err)
			}
			return inputs, labels, nil
		})
	}
	return wrapped{ds, augmented{seed, transforms}}
}

type augmented struct {
	seed       uint64
	transforms []Transform
}

// settings show what the transforms make of an image, because they are functions.
func (a augmented) settings(ds Dataset) string {
	result := []float32(nil)
	inputs, _, err := ds.Batch([]int{0})
	if err == nil && len(inputs) > 0 && inputs[0].DType() == dtypes.Float32 {
		err = tensors.MutableFlatData(inputs[0], func(flat []float32) {
			for i := range flat {
				flat[i] = float32(i%251) / 250
			}
		})
		if err == nil {
			err = a.transform(ds, noEpoch, inputs, []int{0})
		}
		if err == nil {
			result = tensors.MustCopyFlatData[float32](inputs[0])
		}
	}
	return fmt.Sprintf("augmented by seed %d, transforms %d, %v: %v", a.seed, len(a.transforms), err, result)
}

func (a augmented) batch(ds Dataset, epoch int, indices []int) (inputs, labels []*tensors.Tensor, err error) {
	inputs, labels, err = batchOf(ds, epoch, indices)
	if err != nil {
		return nil, nil, err
	}
	return inputs, labels, a.transform(ds, epoch, inputs, indices)
}

// The streams of random numbers of an example.
const (
	augmentStream = iota
	mixStream
	placeStream // And those after it, one for each part of a stream.
)

// randomOf returns the random numbers of an example. ChaCha8 makes streams of similar seeds
// independent.
func randomOf(stream, seed uint64, epoch, index int) *rand.Rand {
	var key [32]byte
	for i, part := range []uint64{seed, uint64(epoch), uint64(index), stream} {
		binary.LittleEndian.PutUint64(key[8*i:], part)
	}
	return rand.New(rand.NewChaCha8(key))
}

// transform transforms all images of a batch.
func (a augmented) transform(ds Dataset, epoch int, inputs []*tensors.Tensor, indices []int) error {
	failed := -1
	err := transformAll(inputs, len(indices), a.transforms, func(row int) *rand.Rand {
		failed = indices[row]
		if epoch == noEpoch {
			return nil
		}
		return randomOf(augmentStream, a.seed, epoch, indices[row])
	})
	switch {
	case err == nil:
		return nil
	case failed < 0:
		return fmt.Errorf("data: augment %s: %w", ds.Name(), err)
	}
	return fmt.Errorf("data: augment example %d of %s: %w", failed, ds.Name(), err)
}

// transformAll transforms the images of a batch of that many examples, up to the first one that
// fails. random returns the random numbers of one, before it is transformed.
func transformAll(inputs []*tensors.Tensor, examples int, transforms []Transform, random func(row int) *rand.Rand) error {
	if err := checkImages(inputs); err != nil {
		return err
	}
	size := inputs[0].Shape().Dimensions
	if size[0] != examples {
		return fmt.Errorf("its first input must have one image for each example: Batch returned %s for %s", plural.Of(size[0], "image"), plural.Of(examples, "example"))
	}
	pixels := size[1] * size[2] * size[3]
	var failed error
	err := tensors.MutableFlatData(inputs[0], func(flat []float32) {
		for row := range size[0] {
			im := Image{Height: size[1], Width: size[2], Channels: size[3], Pixels: flat[row*pixels : (row+1)*pixels]}
			numbers := random(row)
			for _, transform := range transforms {
				if failed = transform(im, numbers); failed != nil {
					return
				}
			}
		}
	})
	return errors.Join(failed, err)
}

// checkImages refuses a batch whose first input is not images.
func checkImages(inputs []*tensors.Tensor) error {
	if len(inputs) == 0 || inputs[0].DType() != dtypes.Float32 || inputs[0].Rank() != 4 {
		return errors.New("its first input must be images, [n, height, width, channels] float32")
	}
	return nil
}
