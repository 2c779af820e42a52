package data_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonbatch/data"
)

// transformed applies a transform to a copy of an image, with the random numbers of a seed.
func transformed(t *testing.T, im data.Image, transform data.Transform, seed uint64) []float32 {
	t.Helper()
	im.Pixels = slices.Clone(im.Pixels)
	if err := transform(im, rand.New(rand.NewPCG(seed, 1))); err != nil {
		t.Fatal(err)
	}
	return im.Pixels
}

// between is an image with values from 0.3 to 0.6, which small changes don't cut off.
func between(channels int) data.Image {
	random := rand.New(rand.NewPCG(2, 3))
	im := data.Image{Height: 7, Width: 9, Channels: channels, Pixels: make([]float32, 7*9*channels)}
	for i := range im.Pixels {
		im.Pixels[i] = 0.3 + 0.3*random.Float32()
	}
	return im
}

// lumaOf is the brightness of a pixel.
func lumaOf(pixel []float32) float64 {
	return 0.299*float64(pixel[0]) + 0.587*float64(pixel[1]) + 0.114*float64(pixel[2])
}

// TestRandomColor: each number changes what it is named after, by one factor for all pixels, which
// is uniform between 1-x and 1+x.
func TestRandomColor(t *testing.T) {
	im := between(3)
	mean := 0.0
	for p := 0; p < len(im.Pixels); p += 3 {
		mean += lumaOf(im.Pixels[p:p+3]) / (7 * 9)
	}
	for name, test := range map[string]struct {
		transform data.Transform
		from      func(pixel []float32) float64 // What values move away from.
	}{
		"brightness": {data.RandomColor(0.5, 0, 0), func([]float32) float64 { return 0 }},
		"contrast":   {data.RandomColor(0, 0.5, 0), func([]float32) float64 { return mean }},
		"saturation": {data.RandomColor(0, 0, 0.5), lumaOf},
	} {
		lowest, highest, sum := 2.0, 0.0, 0.0
		const runs = 2000
		for seed := range uint64(runs) {
			got := transformed(t, im, test.transform, seed)
			var factor float64
			for i := range got {
				from := test.from(im.Pixels[i/3*3:][:3])
				if old := float64(im.Pixels[i]) - from; i == 0 {
					factor = (float64(got[0]) - from) / old
				} else if want := from + factor*old; math.Abs(float64(got[i])-want) > 1e-3 {
					t.Fatalf("%s: value %d is %g, want %g", name, i, got[i], want)
				}
			}
			lowest, highest, sum = min(lowest, factor), max(highest, factor), sum+factor
		}
		if lowest < 0.499 || lowest > 0.51 || highest > 1.501 || highest < 1.49 || math.Abs(sum/runs-1) > 0.03 {
			t.Errorf("%s: factors from %g to %g, %g on average", name, lowest, highest, sum/runs)
		}
	}
	for name, test := range map[string]struct {
		im        data.Image
		transform data.Transform
	}{"no change": {im, data.RandomColor(0, 0, 0)}, "saturation of gray": {between(1), data.RandomColor(0, 0, 1)}} {
		for i, value := range transformed(t, test.im, test.transform, 4) {
			if math.Abs(float64(value-test.im.Pixels[i])) > 1e-6 {
				t.Fatalf("%s: value %d is %g, and was %g", name, i, value, test.im.Pixels[i])
			}
		}
	}
	for seed := range uint64(100) {
		if got := transformed(t, im, data.RandomColor(1, 1, 1), seed); slices.Min(got) < 0 || slices.Max(got) > 1 {
			t.Fatalf("values from %g to %g", slices.Min(got), slices.Max(got))
		}
	}
}

// TestRandomResizedCrop: in an image whose values are the columns, and the rows, the step from one
// pixel to the next says how large the part was, which must be in the image.
func TestRandomResizedCrop(t *testing.T) {
	const height, width, smallest = 30, 40, 0.2
	im := data.Image{Height: height, Width: width, Channels: 2, Pixels: make([]float32, height*width*2)}
	for p := range height * width {
		im.Pixels[2*p], im.Pixels[2*p+1] = float32(p%width), float32(p/width)
	}
	least, most := 1.0, 0.0
	for seed := range uint64(3000) {
		got := transformed(t, im, data.RandomResizedCrop(smallest), seed)
		at := func(y, x, ch int) float64 { return float64(got[(y*width+x)*2+ch]) }
		across, down := at(10, 25, 0)-at(10, 15, 0), at(20, 10, 1)-at(10, 10, 1)
		area := across / 10 * down / 10
		least, most = min(least, area), max(most, area)
		if ratio := across / down; ratio < 0.749 || ratio > 1.334 {
			t.Fatalf("seed %d: the proportions changed by %g", seed, ratio)
		}
		for y := range height {
			for x := range width {
				if v := at(y, x, 0); v < 0 || v > width-1 || math.Abs(v-at(0, x, 0)) > 1e-4 || x > 0 && v < at(y, x-1, 0) {
					t.Fatalf("seed %d: column %d, row %d is column %g of the original", seed, x, y, v)
				}
				if v := at(y, x, 1); v < 0 || v > height-1 || math.Abs(v-at(y, 0, 1)) > 1e-4 {
					t.Fatalf("seed %d: column %d, row %d is row %g of the original", seed, x, y, v)
				}
			}
		}
	}
	if least < smallest-0.01 || least > smallest+0.05 || most > 1.001 || most < 0.95 {
		t.Errorf("parts of %g to %g of the area", least, most)
	}
}

// TestTransformsRefuse: errors say what to change.
func TestTransformsRefuse(t *testing.T) {
	normalized := between(3)
	normalized.Pixels[5] = -1
	for want, transform := range map[string]data.Transform{
		"RandomColor: each number must be from 0 to 1, got 0.1, 2 and 0":                                          data.RandomColor(0.1, 2, 0),
		"RandomColor: the image has the value -1, and values must be from 0 to 1: put it before Normalize":        data.RandomColor(0.1, 0, 0),
		"RandomResizedCrop: the smallest part must be more than 0 and at most 1, got 0":                           data.RandomResizedCrop(0),
		fmt.Sprintf("RandomResizedCrop: the smallest part must be more than 0 and at most 1, got %g", math.NaN()): data.RandomResizedCrop(math.NaN()),
	} {
		if err := transform(normalized, rand.New(rand.NewPCG(1, 1))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	for _, transform := range []data.Transform{data.RandomColor(0.5, 0.5, 0.5), data.RandomResizedCrop(0.1)} {
		im := between(3)
		if err := transform(im, nil); err != nil || !slices.Equal(im.Pixels, between(3).Pixels) {
			t.Errorf("outside a training run, the image is changed, %v", err)
		}
	}
}
