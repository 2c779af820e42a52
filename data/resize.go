package data

import (
	"errors"
	"fmt"
	"image"
	"slices"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/data/scale"
)

// Resize returns ds with its images scaled to this size, without keeping their proportions. It is
// torchvision's Resize((height, width)): bilinear, and when an image shrinks, each pixel is an
// average over all that it covers. Images are the first input, [n, height, width, channels]
// float32; their numbers may be any, such as normalized ones.
//
// Resize and CenterCrop can be combined, with Augment too:
//
//	photos = data.CenterCrop(data.Resize(photos, 256, 256), 224, 224)
//	photos = data.Augment(photos, 1, data.RandomFlip(0.5), data.Normalize(mean, std))
//
// ImageFolder can scale the images that it reads, which takes less time and memory; theirs may have
// different sizes.
func Resize(ds Dataset, height, width int) Dataset {
	return resized(ds, sized{"resize", image.Pt(width, height), scaled})
}

// CenterCrop returns ds with the middle of its images, of this size. It is torchvision's
// CenterCrop((height, width)), except that images must not be smaller. See Resize.
func CenterCrop(ds Dataset, height, width int) Dataset {
	return resized(ds, sized{"crop", image.Pt(width, height), cropped})
}

// resized returns the dataset, or a stream if ds is one.
func resized(ds Dataset, s sized) Dataset {
	if stream, ok := ds.(*Streamed); ok {
		return stream.changed(func(_ []placed, inputs, labels []*tensors.Tensor) (_, _ []*tensors.Tensor, err error) {
			return s.convert(ds.Name(), inputs, labels)
		})
	}
	return wrapped{ds, s}
}

// sized gives the images of a dataset another size.
type sized struct {
	verb string
	size image.Point
	// make returns what fills an image of a new size with one of an old size.
	make func(to, from image.Point, channels int) (func(to, from []float32), error)
}

func (s sized) settings(Dataset) string { return fmt.Sprintf("%s to %v", s.verb, s.size) }

func (s sized) batch(ds Dataset, epoch int, indices []int) (inputs, labels []*tensors.Tensor, err error) {
	if inputs, labels, err = batchOf(ds, epoch, indices); err != nil {
		return nil, nil, err
	}
	return s.convert(ds.Name(), inputs, labels)
}

// convert replaces the images of a batch, which may also be its labels.
func (s sized) convert(name string, inputs, labels []*tensors.Tensor) (_, _ []*tensors.Tensor, err error) {
	var images *tensors.Tensor
	if err = checkImages(inputs); err == nil {
		images, err = s.images(inputs[0])
	}
	if err != nil {
		return nil, nil, fmt.Errorf("data: %s %s: %w", s.verb, name, err)
	}
	old := inputs[0]
	inputs, labels = slices.Clone(inputs), slices.Clone(labels)
	for _, all := range [][]*tensors.Tensor{inputs, labels} {
		for i := range all {
			if all[i] == old {
				all[i] = images
			}
		}
	}
	if images != old {
		err = old.FinalizeAll()
	}
	return inputs, labels, err
}

// images returns images in the new size.
func (s sized) images(old *tensors.Tensor) (*tensors.Tensor, error) {
	if s.size.X < 1 || s.size.Y < 1 || s.size.X > maxPixels/s.size.Y {
		return nil, fmt.Errorf("the size is %dx%d: it must have from 1 to %d pixels", s.size.Y, s.size.X, maxPixels)
	}
	d := old.Shape().Dimensions
	n, from, channels := d[0], image.Pt(d[2], d[1]), d[3]
	if from == s.size {
		return old, nil
	}
	convert, err := s.make(s.size, from, channels)
	if err != nil {
		return nil, err
	}
	images := tensors.FromShape(shapes.Make(dtypes.Float32, n, s.size.Y, s.size.X, channels))
	before, after := from.X*from.Y*channels, s.size.X*s.size.Y*channels
	var readErr error
	err = tensors.MutableFlatData(images, func(to []float32) {
		readErr = tensors.ConstFlatData(old, func(from []float32) {
			for row := range n {
				convert(to[row*after:][:after], from[row*before:][:before])
			}
		})
	})
	return images, errors.Join(readErr, err)
}

// scaled scales images.
func scaled(to, from image.Point, channels int) (func(to, from []float32), error) {
	if from.X < 1 || from.Y < 1 {
		return nil, fmt.Errorf("the images have %dx%d pixels", from.Y, from.X)
	}
	f := scale.NewFloats(to, from)
	return func(to, from []float32) { f.Bilinear(to, from, channels) }, nil
}

// cropped crops images.
func cropped(to, from image.Point, channels int) (func(to, from []float32), error) {
	if to.X > from.X || to.Y > from.Y {
		return nil, fmt.Errorf("the images have %dx%d pixels, fewer than the %dx%d of the crop: resize them first", from.Y, from.X, to.Y, to.X)
	}
	left, top := scale.Margin(to.X, from.X)*channels, scale.Margin(to.Y, from.Y)
	return func(crop, whole []float32) {
		for y := range to.Y {
			copy(crop[y*to.X*channels:][:to.X*channels], whole[(top+y)*from.X*channels+left:])
		}
	}, nil
}
