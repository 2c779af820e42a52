package data_test

import (
	"image"
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

// TestTitledGrid: titles are black on white, each above its own image. Small images are enlarged,
// and an image that is narrower than its title is in the middle.
func TestTitledGrid(t *testing.T) {
	const black, gray, white = 0, 128, 255
	batch := func(size int) *tensors.Tensor {
		values := make([]float32, 3*size*size)
		for i := range values {
			values[i] = float32(i/(size*size)) / 2
		}
		return tensors.FromFlatDataAndDimensions(values, 3, size, size, 1)
	}
	text := data.GridText{Caption: "digits", Titles: []string{"4, not a 9", "", "Größe 7"}}
	for _, test := range []struct{ size, shown int }{{20, 60}, {28, 56}, {110, 110}} {
		img, err := data.TitledGrid(batch(test.size), 2, text)
		if err != nil {
			t.Fatal(err)
		}
		cell := (img.Bounds().Dx() - 1) / 2
		if got := img.Bounds().Dy(); got != 16+2*(16+test.shown)+1 || cell < test.shown {
			t.Errorf("images of %d: the grid is %v, want images of %d", test.size, img.Bounds(), test.shown)
		}
		for i, want := range []int{black, gray, white} {
			corner := image.Pt(i%2*(cell+1), 16+i/2*(17+test.shown))
			title := image.Rectangle{corner, corner.Add(image.Pt(cell, 16))}
			if ink := inkOf(img, title); (ink > 20) != (text.Titles[i] != "") {
				t.Errorf("images of %d: the title %q has %d dark pixels", test.size, text.Titles[i], ink)
			}
			left := (cell - test.shown) / 2
			for _, at := range []image.Point{{left, 16}, {left + test.shown - 1, 15 + test.shown}} {
				if got := levelOf(img, corner.Add(at)); got != want {
					t.Errorf("images of %d: the pixel %v of image %d is %d, want %d", test.size, at, i, got, want)
				}
			}
		}
		if ink := inkOf(img, image.Rect(0, 0, img.Bounds().Dx(), 16)); ink < 20 {
			t.Errorf("images of %d: the caption has %d dark pixels", test.size, ink)
		}
	}
}

// TestTitledGridOfTallImages: an image is not enlarged to a tower.
func TestTitledGridOfTallImages(t *testing.T) {
	for _, test := range []struct{ height, width, shown int }{{900, 1, 900}, {60, 2, 120}, {30, 3, 120}} {
		batch := tensors.FromShape(shapes.Make(dtypes.Float32, 1, test.height, test.width, 3))
		img, err := data.TitledGrid(batch, 1, data.GridText{Titles: []string{"spectrum of a long signal"}})
		if err != nil {
			t.Fatal(err)
		}
		if got := img.Bounds().Dy(); got != 16+test.shown {
			t.Errorf("%d x %d pixels are drawn with a height of %d, want %d", test.height, test.width, got-16, test.shown)
		}
	}
}

// TestGridWithCaption widens the grid, and leaves the images as they are.
func TestGridWithCaption(t *testing.T) {
	img, err := data.TitledGrid(tensors.FromFlatDataAndDimensions([]float32{0, 1}, 2, 1, 1, 1), 2, data.GridText{Caption: "epoch 1,\n  step 200"})
	if err != nil {
		t.Fatal(err)
	}
	if size := img.Bounds().Size(); size.X < 60 || size.Y != 17 || levelOf(img, image.Pt(0, 16)) != 0 || levelOf(img, image.Pt(2, 16)) != 255 {
		t.Errorf("the grid is %v", size)
	}
}

func levelOf(img image.Image, at image.Point) int {
	return int(color.GrayModel.Convert(img.At(at.X, at.Y)).(color.Gray).Y)
}

// inkOf counts the dark pixels of a rectangle whose background is white.
func inkOf(img image.Image, in image.Rectangle) (dark int) {
	for y := in.Min.Y; y < in.Max.Y; y++ {
		for x := in.Min.X; x < in.Max.X; x++ {
			if levelOf(img, image.Pt(x, y)) < 100 {
				dark++
			}
		}
	}
	return dark
}

func TestTitledGridRefuses(t *testing.T) {
	_, err := data.TitledGrid(tensors.FromShape(shapes.Make(dtypes.Float32, 3, 2, 2, 1)), 2, data.GridText{Titles: []string{"one"}})
	if err == nil || !strings.Contains(err.Error(), "draw 3 images with 1 title: give each image a title") {
		t.Errorf("got %v", err)
	}
}
