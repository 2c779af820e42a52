package data

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"gonbatch/internal/plural"
)

// RandomFlip flips an image from left to right with this probability.
func RandomFlip(probability float64) Transform {
	return func(im Image, random *rand.Rand) error {
		if !(probability >= 0 && probability <= 1) {
			return fmt.Errorf("RandomFlip: the probability must be from 0 to 1, got %g", probability)
		}
		if random == nil || random.Float64() >= probability {
			return nil
		}
		for row := range slices.Chunk(im.Pixels, im.Width*im.Channels) {
			for left, right := 0, im.Width-1; left < right; left, right = left+1, right-1 {
				for ch := range im.Channels {
					a, b := &row[left*im.Channels+ch], &row[right*im.Channels+ch]
					*a, *b = *b, *a
				}
			}
		}
		return nil
	}
}

// RandomCrop pads an image with this many zeros on each side, which are black if Normalize comes
// later, and crops an image of the original size at a random place (He et al., Deep Residual
// Learning for Image Recognition, 2015, section 4.2).
func RandomCrop(padding int) Transform {
	return func(im Image, random *rand.Rand) error {
		if padding < 0 {
			return fmt.Errorf("RandomCrop: the padding can't be negative, got %d", padding)
		}
		if random == nil {
			return nil
		}
		shift(im, random.IntN(2*padding+1)-padding, random.IntN(2*padding+1)-padding)
		return nil
	}
}

// shift moves the pixels down and to the right, and fills the rest with zeros.
func shift(im Image, down, right int) {
	old := slices.Clone(im.Pixels)
	clear(im.Pixels)
	from, to := max(0, -right), max(0, right)
	n := im.Width - from - to
	if n <= 0 {
		return
	}
	stride := im.Width * im.Channels
	for y := max(0, down); y < im.Height+min(0, down); y++ {
		copy(im.Pixels[y*stride+to*im.Channels:][:n*im.Channels], old[(y-down)*stride+from*im.Channels:])
	}
}

// Normalize subtracts the mean of each channel and divides by its standard deviation, in training
// runs and elsewhere.
func Normalize(mean, std []float32) Transform {
	return func(im Image, _ *rand.Rand) error {
		if len(mean) != im.Channels || len(std) != im.Channels {
			return fmt.Errorf("Normalize: %s and %s for %s", plural.Of(len(mean), "mean"), plural.Of(len(std), "standard deviation"), plural.Of(im.Channels, "channel"))
		}
		if slices.ContainsFunc(std, func(s float32) bool { return !(s > 0) }) {
			return fmt.Errorf("Normalize: the standard deviations must be more than 0, got %v", std)
		}
		outside := func(v float32) bool { return !(v >= 0 && v <= 1) }
		if slices.ContainsFunc(mean, outside) && !slices.ContainsFunc(im.Pixels, outside) {
			return fmt.Errorf("Normalize: the means %v are not those of pixels, which are from 0 to 1 here: divide means and standard deviations of pixels up to 255 by 255", mean)
		}
		for i := range im.Pixels {
			im.Pixels[i] = (im.Pixels[i] - mean[i%im.Channels]) / std[i%im.Channels]
		}
		return nil
	}
}
