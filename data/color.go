package data

import (
	"fmt"
	"math/rand/v2"
)

// RandomColor changes the brightness, the contrast and the saturation of an image, in this order,
// each by a random factor from 1-x to 1+x, where x is the number given for it, from 0 (no change)
// to 1. Values stay between 0 and 1, so it must come before Normalize. The saturation of an image
// without colors doesn't change.
//
// It computes what torchvision's ColorJitter does, except that ColorJitter changes them in random
// order.
func RandomColor(brightness, contrast, saturation float64) Transform {
	return func(im Image, random *rand.Rand) error {
		for _, x := range []float64{brightness, contrast, saturation} {
			if !(x >= 0 && x <= 1) {
				return fmt.Errorf("RandomColor: each number must be from 0 to 1, got %g, %g and %g", brightness, contrast, saturation)
			}
		}
		if random == nil {
			return nil
		}
		for _, value := range im.Pixels {
			if !(value >= 0 && value <= 1) {
				return fmt.Errorf("RandomColor: the image has the value %g, and values must be from 0 to 1: put it before Normalize", value)
			}
		}
		factor := func(x float64) float32 { return float32(1 + x*(2*random.Float64()-1)) }
		blend(im.Pixels, factor(brightness), 0)
		blend(im.Pixels, factor(contrast), meanLuma(im))
		if change := factor(saturation); im.Channels == 3 {
			for p := 0; p < len(im.Pixels); p += 3 {
				pixel := im.Pixels[p : p+3]
				blend(pixel, change, luma(pixel))
			}
		}
		return nil
	}
}

// blend moves values away from another one, by a factor above 1, or towards it.
func blend(values []float32, factor, from float32) {
	for i, value := range values {
		values[i] = min(max(from+factor*(value-from), 0), 1)
	}
}

// meanLuma is the mean brightness of an image.
func meanLuma(im Image) float32 {
	sum := 0.0
	for p := 0; p < len(im.Pixels); p += im.Channels {
		sum += float64(luma(im.Pixels[p : p+im.Channels]))
	}
	return float32(sum / float64(im.Height*im.Width))
}

// luma is the brightness of a pixel: that of its colors, or the mean of its channels.
func luma(pixel []float32) (sum float32) {
	if len(pixel) == 3 {
		return 0.299*pixel[0] + 0.587*pixel[1] + 0.114*pixel[2] // ITU-R BT.601, as in JPEG.
	}
	for _, value := range pixel {
		sum += value
	}
	return sum / float32(len(pixel))
}
