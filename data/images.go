package data

import (
	"errors"
	"fmt"
	"math"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/internal/plural"
)

// ImagesConfig describes a set of images, each with a label.
type ImagesConfig struct {
	Name                    string
	Height, Width, Channels int
	Classes                 int       // Classes is the number of classes; labels are 0..Classes-1.
	Pixels                  []uint8   // Pixels of all images, each row by row, channels last. The slice is kept, not copied.
	Labels                  []uint8   // Labels, one for each image. The slice is kept, not copied.
	Mean, Std               []float32 // Mean and Std of each channel, for pixels from 0 to 1; empty: 0 and 1.
}

// Images holds images as bytes in memory and returns them as normalized float32.
type Images struct {
	config ImagesConfig
	pixels int            // pixels is the number of bytes of an image.
	value  [][256]float32 // value of each byte, for each channel: normalization without arithmetic.
}

var _ Dataset = (*Images)(nil)

// NewImages returns a set of images. It returns an error if the configuration is inconsistent.
func NewImages(c ImagesConfig) (*Images, error) {
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("images %q: %w", c.Name, err)
	}
	d := &Images{config: c, pixels: c.Height * c.Width * c.Channels, value: make([][256]float32, c.Channels)}
	for ch := range d.value {
		mean, std := float32(0), float32(1)
		if len(c.Mean) > 0 {
			mean = c.Mean[ch]
		}
		if len(c.Std) > 0 {
			std = c.Std[ch]
		}
		for b := range d.value[ch] {
			d.value[ch][b] = (float32(b)/255 - mean) / std
		}
	}
	return d, nil
}

func (c ImagesConfig) check() error {
	if c.Height <= 0 || c.Width <= 0 || c.Channels <= 0 {
		return fmt.Errorf("height, width and channels must be positive, not %d, %d, %d", c.Height, c.Width, c.Channels)
	}
	n, size := len(c.Labels), c.Height*c.Width*c.Channels
	switch {
	case n == 0:
		return errors.New("no images")
	case len(c.Pixels) != n*size:
		return fmt.Errorf("%d bytes of pixels for %s; images of %dx%dx%d need %d", len(c.Pixels), plural.Of(n, "label"), c.Height, c.Width, c.Channels, n*size)
	case c.Classes <= 0:
		return fmt.Errorf("the number of classes must be positive, not %d", c.Classes)
	case len(c.Mean) != 0 && len(c.Mean) != c.Channels:
		return fmt.Errorf("%s for %s", plural.Of(len(c.Mean), "mean"), plural.Of(c.Channels, "channel"))
	case len(c.Std) != 0 && len(c.Std) != c.Channels:
		return fmt.Errorf("%s for %s", plural.Of(len(c.Std), "standard deviation"), plural.Of(c.Channels, "channel"))
	}
	for ch, mean := range c.Mean {
		if mean-mean != 0 {
			return fmt.Errorf("the mean of channel %d must be a finite number, not %v", ch, mean)
		}
	}
	for ch, std := range c.Std {
		if !(std > 0 && std <= math.MaxFloat32) {
			return fmt.Errorf("the standard deviation of channel %d must be positive, not %v", ch, std)
		}
	}
	for i, label := range c.Labels {
		if int(label) >= c.Classes {
			return fmt.Errorf("image %d has label %d; with %s the largest is %d", i, label, plural.Of(c.Classes, "class"), c.Classes-1)
		}
	}
	return nil
}

// Name returns the name of the set.
func (d *Images) Name() string { return d.config.Name }

// Len returns the number of images.
func (d *Images) Len() int { return len(d.config.Labels) }

// Normalized returns the same images with another mean and standard deviation for each channel, for
// pixels from 0 to 1. With nil, nil, pixels stay between 0 and 1, as generative models need them.
// The pixels are shared.
func (d *Images) Normalized(mean, std []float32) (*Images, error) {
	c := d.config
	c.Mean, c.Std = mean, std
	return NewImages(c)
}

// Classes returns the number of classes.
func (d *Images) Classes() int { return d.config.Classes }

// Fingerprint hashes the pixels, the labels and the normalization. It implements Fingerprinted.
func (d *Images) Fingerprint() string {
	c := d.config
	return fingerprintOf(fmt.Appendf(nil, "%d %d %d %v %v\n", c.Height, c.Width, c.Channels, c.Mean, c.Std), c.Pixels, c.Labels)
}

// Batch returns one input, [n, height, width, channels] float32, and one tensor of labels, [n, 1]
// int32, which is the shape that GoMLX's sparse categorical losses and metrics take. See Dataset.
func (d *Images) Batch(indices []int) (inputs, labels []*tensors.Tensor, err error) {
	c := d.config
	if err := CheckNumbers(c.Name, indices, d.Len()); err != nil {
		return nil, nil, err
	}
	x := tensors.FromShape(shapes.Make(dtypes.Float32, len(indices), c.Height, c.Width, c.Channels))
	if err := tensors.MutableFlatData(x, func(flat []float32) { d.fill(flat, indices) }); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", c.Name, err)
	}
	y, err := labelTensor(len(indices), func(row int) int32 { return int32(c.Labels[indices[row]]) })
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", c.Name, err)
	}
	return []*tensors.Tensor{x}, []*tensors.Tensor{y}, nil
}

// labelTensor returns labels as [n, 1] int32.
func labelTensor(n int, label func(row int) int32) (*tensors.Tensor, error) {
	y := tensors.FromShape(shapes.Make(dtypes.Int32, n, 1))
	return y, tensors.MutableFlatData(y, func(flat []int32) {
		for row := range flat {
			flat[row] = label(row)
		}
	})
}

// fill writes the normalized images one after another.
func (d *Images) fill(flat []float32, indices []int) {
	for row, i := range indices {
		from := d.config.Pixels[i*d.pixels : (i+1)*d.pixels]
		to := flat[row*d.pixels : (row+1)*d.pixels]
		for ch := range d.value {
			normalize(to[ch:], from[ch:], len(d.value), &d.value[ch])
		}
	}
}

// normalize looks up every step-th byte.
func normalize(to []float32, from []uint8, step int, value *[256]float32) {
	if step == 1 { // The common case, without bounds checks.
		to = to[:len(from)]
		for p, b := range from {
			to[p] = value[b]
		}
		return
	}
	for p := 0; p < len(from); p += step {
		to[p] = value[from[p]]
	}
}
