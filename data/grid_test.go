package data_test

import (
	"image/color"
	"math"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/data"
)

// TestGrid draws values outside 0 to 1 as black or white, and NaN as black.
func TestGrid(t *testing.T) {
	nan := float32(math.NaN())
	img, err := data.Grid(tensors.FromFlatDataAndDimensions([]float32{0, 1, 0.5, nan, -3, 7}, 6, 1, 1, 1), 4)
	if err != nil {
		t.Fatal(err)
	}
	if size := img.Bounds().Size(); size.X != 7 || size.Y != 3 {
		t.Fatalf("it is %v, want 7 x 3", size)
	}
	for i, want := range []uint8{0, 255, 128, 0, 0, 255} {
		if got := color.NRGBAModel.Convert(img.At(i%4*2, i/4*2)).(color.NRGBA); got.R != want || got.A != 255 {
			t.Errorf("image %d is %v, want %d", i, got, want)
		}
	}
}

func TestGridRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		shape   []int
		columns int
	}{
		"no images":    {[]int{0, 2, 2, 1}, 4},
		"no pixels":    {[]int{3, 0, 2, 1}, 4},
		"two channels": {[]int{3, 2, 2, 2}, 4},
		"three axes":   {[]int{3, 2, 2}, 4},
		"no columns":   {[]int{3, 2, 2, 1}, 0},
	} {
		if _, err := data.Grid(tensors.FromShape(shapes.Make(dtypes.Float32, test.shape...)), test.columns); err == nil || !strings.Contains(err.Error(), "the shape must be [n, height, width, 1 or 3]") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
