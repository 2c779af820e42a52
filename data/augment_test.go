package data_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/data"
)

// gradients returns n images of 4x5 pixels and two channels, with all values different.
func gradients(t *testing.T, n int) data.Dataset {
	t.Helper()
	c := data.ImagesConfig{Name: "gradients", Height: 4, Width: 5, Channels: 2, Classes: 1, Labels: make([]uint8, n)}
	for range n {
		for pixel := range 4 * 5 * 2 {
			c.Pixels = append(c.Pixels, uint8(10+pixel))
		}
	}
	images, err := data.NewImages(c)
	if err != nil {
		t.Fatal(err)
	}
	return images
}

// pixelsOf returns the images of a batch, one after another.
func pixelsOf(t *testing.T, ds data.Dataset, epoch int, indices ...int) []float32 {
	t.Helper()
	inputs, _, err := data.EpochBatch(ds, epoch, indices)
	if err != nil {
		t.Fatal(err)
	}
	return tensors.MustCopyFlatData[float32](inputs[0])
}

// at returns a pixel of an image of gradients; 0 outside it.
func at(image []float32, y, x, ch int) float32 {
	if y < 0 || y >= 4 || x < 0 || x >= 5 {
		return 0
	}
	return image[(y*5+x)*2+ch]
}

// TestAugment: an example is one of the flips and crops, determined only by its number and the
// epoch, in any batch and each time. All of them occur, each about equally often.
func TestAugment(t *testing.T) {
	const n, epochs, padding = 300, 10, 2
	plain := gradients(t, n)
	ds := data.Augment(plain, 5, data.RandomCrop(padding), data.RandomFlip(0.5))
	original := pixelsOf(t, plain, 0, 0)
	counts := map[[3]int]int{}
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	for epoch := range epochs {
		whole := pixelsOf(t, ds, epoch, all...)
		for i := range n {
			image := whole[i*40:][:40]
			counts[changeOf(t, original, image)]++
			if i%37 == 0 && !slices.Equal(image, pixelsOf(t, ds, epoch, 3, i)[40:]) {
				t.Fatalf("example %d is another one in another batch", i)
			}
		}
	}
	if want := 2 * 5 * 5; len(counts) != want {
		t.Errorf("%d different changes, want %d", len(counts), want)
	}
	for change, count := range counts { // 60 of each are expected; 6 standard deviations are 47.
		if math.Abs(float64(count)-n*epochs/50) > 47 {
			t.Errorf("the change %v occurs %d times of %d", change, count, n*epochs)
		}
	}
	if other := data.Augment(plain, 6, data.RandomCrop(padding), data.RandomFlip(0.5)); slices.Equal(pixelsOf(t, other, 0, all...), pixelsOf(t, ds, 0, all...)) {
		t.Error("another seed changes nothing")
	}
	inputs, _, err := ds.Batch([]int{1})
	if err != nil || !slices.Equal(tensors.MustCopyFlatData[float32](inputs[0]), original) {
		t.Errorf("outside of a training run an image is changed, %v", err)
	}
}

// changeOf returns how an image was shifted, and whether it was flipped.
func changeOf(t *testing.T, original, image []float32) [3]int {
	t.Helper()
	for flipped := range 2 {
		for down := -2; down <= 2; down++ {
			for right := -2; right <= 2; right++ {
				same := true
				for i := range 40 {
					y, x, ch := i/10, i/2%5, i%2
					if flipped == 1 {
						x = 4 - x
					}
					same = same && image[i] == at(original, y-down, x-right, ch)
				}
				if same {
					return [3]int{flipped, down, right}
				}
			}
		}
	}
	t.Fatalf("%v is no crop of %v", image, original)
	return [3]int{}
}

// TestNormalizeAfterCrop: pixels added by a crop are black, and normalized like the rest, also
// outside a training run.
func TestNormalizeAfterCrop(t *testing.T) {
	plain := gradients(t, 1)
	ds := data.Augment(plain, 1, data.RandomCrop(40), data.Normalize([]float32{0.5, 0.25}, []float32{2, 4}))
	cropped := pixelsOf(t, ds, 1, 0) // Shifted by up to 40 pixels, an image of 5 is almost always gone.
	if cropped[0] != -0.25 || cropped[1] != -0.0625 {
		t.Errorf("black is %v and %v, want -0.25 and -0.0625", cropped[0], cropped[1])
	}
	inputs, _, err := ds.Batch([]int{0})
	if err != nil {
		t.Fatal(err)
	}
	got, before := tensors.MustCopyFlatData[float32](inputs[0]), pixelsOf(t, plain, 0, 0)
	if got[3] != (before[3]-0.25)/4 || got[2] != (before[2]-0.5)/2 {
		t.Errorf("%v became %v", before[:4], got[:4])
	}
}

// TestAugmentRefuses: errors name the dataset and the example.
func TestAugmentRefuses(t *testing.T) {
	own := func(im data.Image, _ *rand.Rand) error {
		if im.Height != 4 || im.Width != 5 || im.Channels != 2 {
			t.Errorf("an image of %dx%dx%d", im.Height, im.Width, im.Channels)
		}
		im.Pixels[0] = 7
		return nil
	}
	if got := pixelsOf(t, data.Augment(gradients(t, 2), 1, own), 0, 0, 1); got[0] != 7 || got[40] != 7 {
		t.Error("a transform of one's own was not called for each image")
	}
	for want, ds := range map[string]data.Dataset{
		"augment example 1 of gradients: RandomFlip: the probability must be from 0 to 1, got 2": data.Augment(gradients(t, 2), 1, data.RandomFlip(2)),
		"RandomCrop: the padding can't be negative, got -1":                                      data.Augment(gradients(t, 2), 1, data.RandomCrop(-1)),
		"Normalize: 3 means and 3 standard deviations for 2 channels":                            data.Augment(gradients(t, 2), 1, data.Normalize([]float32{1, 1, 1}, []float32{1, 1, 1})),
		"the standard deviations must be more than 0, got [1 0]":                                 data.Augment(gradients(t, 2), 1, data.Normalize([]float32{1, 1}, []float32{1, 0})),
		"augment numbered: its first input must be images":                                       data.Augment(numbered(3), 1, data.RandomFlip(0.5)),
	} {
		if _, _, err := ds.Batch([]int{1}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
