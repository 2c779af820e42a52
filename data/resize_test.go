package data_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/data"
)

// sizing is what PyTorch and torchvision make of two images. testdata/resize.py wrote it.
type sizing struct {
	Function string
	From, To []int
	Pixels   []float32
}

func sizings(t *testing.T) (all []sizing) {
	t.Helper()
	content, err := os.ReadFile("testdata/resize.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(content, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// patterned returns images with the pixels of testdata/resize.py.
func patterned(t *testing.T, n int, size ...int) data.Dataset {
	t.Helper()
	pixels := make([]float32, n*size[0]*size[1]*size[2])
	for i := range pixels {
		pixels[i] = float32(37*i%101) / 100
	}
	x := tensors.FromFlatDataAndDimensions(pixels, append([]int{n}, size...)...)
	ds, err := data.Tensors("patterns", []*tensors.Tensor{x}, []*tensors.Tensor{tensors.FromFlatDataAndDimensions(make([]int32, n), n, 1)})
	if err != nil {
		t.Fatal(err)
	}
	return ds
}

// TestResize compares with PyTorch's interpolate and torchvision's center_crop.
func TestResize(t *testing.T) {
	for _, tt := range sizings(t) {
		t.Run(fmt.Sprint(tt.Function, tt.From, tt.To), func(t *testing.T) {
			function := map[string]func(data.Dataset, int, int) data.Dataset{"Resize": data.Resize, "CenterCrop": data.CenterCrop}[tt.Function]
			ds := function(patterned(t, 2, tt.From...), tt.To[0], tt.To[1])
			inputs, labels, err := ds.Batch([]int{1, 0, 1})
			if err != nil {
				t.Fatal(err)
			}
			if got := inputs[0].Shape().Dimensions; !slices.Equal(got, []int{3, tt.To[0], tt.To[1], tt.From[2]}) || len(labels) != 1 {
				t.Fatalf("images of shape %v, %d labels", got, len(labels))
			}
			half := len(tt.Pixels) / 2
			want := slices.Concat(tt.Pixels[half:], tt.Pixels[:half], tt.Pixels[half:])
			for i, got := range tensors.MustCopyFlatData[float32](inputs[0]) {
				if d := got - want[i]; !(math.Abs(float64(d)) < 3e-6) {
					t.Fatalf("pixel %d is %g, want %g", i, got, want[i])
				}
			}
		})
	}
}

// TestResizeOfEpochs: images that differ between epochs are scaled as they are in each, and
// augmentation may come before or after.
func TestResizeOfEpochs(t *testing.T) {
	ds := patterned(t, 6, 8, 9, 3)
	flip := data.RandomFlip(0.5)
	before := data.Resize(data.Augment(ds, 1, flip), 4, 3)
	after := data.Augment(data.Resize(ds, 4, 3), 1, flip)
	indices, flipped := []int{3, 0, 5, 1, 1}, 0
	plain := pixelsOf(t, data.Resize(ds, 4, 3), 0, indices...)
	for epoch := range 4 {
		a := pixelsOf(t, before, epoch, indices...)
		b := pixelsOf(t, after, epoch, indices...)
		for i := range a {
			if math.Abs(float64(a[i]-b[i])) > 1e-6 { // A flip and scaling can be exchanged.
				t.Fatalf("epoch %d: pixel %d is %g before and %g after", epoch, i, a[i], b[i])
			}
		}
		if !slices.Equal(b, plain) {
			flipped++
		}
	}
	if flipped == 0 {
		t.Error("no image was flipped")
	}
}

// autoencoded has its images as labels too: the same tensor.
type autoencoded struct{ data.Dataset }

func (a autoencoded) Batch(indices []int) (inputs, labels []*tensors.Tensor, err error) {
	inputs, _, err = a.Dataset.Batch(indices)
	return inputs, inputs, err
}

// TestResizeOfLabels: a tensor that is an input and a label stays both.
func TestResizeOfLabels(t *testing.T) {
	inputs, labels, err := data.CenterCrop(autoencoded{patterned(t, 3, 6, 6, 1)}, 2, 4).Batch([]int{2, 1})
	if err != nil || len(labels) != 1 || labels[0] != inputs[0] || !slices.Equal(labels[0].Shape().Dimensions, []int{2, 2, 4, 1}) {
		t.Errorf("got %v and %v, %v", inputs, labels, err)
	}
}

func TestResizeRefuses(t *testing.T) {
	numbers, err := data.Tensors("numbers", []*tensors.Tensor{tensors.FromFlatDataAndDimensions([]float32{1, 2}, 2, 1)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	ds := patterned(t, 2, 4, 5, 3)
	for want, ds := range map[string]data.Dataset{
		"data: resize patterns: the size is 0x3: it must have from 1 to":                                     data.Resize(ds, 0, 3),
		"data: resize patterns: the size is 1000000x1000000: it must":                                        data.Resize(ds, 1_000_000, 1_000_000),
		"data: crop patterns: the size is 3x-1: it must":                                                     data.CenterCrop(ds, 3, -1),
		"data: crop patterns: the images have 4x5 pixels, fewer than the 5x5 of the crop: resize them first": data.CenterCrop(ds, 5, 5),
		"data: resize numbers: its first input must be images, [n, height, width, channels] float32":         data.Resize(numbers, 3, 3),
		"patterns: no example 7; there are 0 to 1":                                                           data.Resize(ds, 3, 3),
	} {
		indices := []int{1}
		if strings.Contains(want, "no example") {
			indices = []int{7}
		}
		if _, _, err := ds.Batch(indices); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

func ExampleResize() {
	square, err := data.Tensors("square", []*tensors.Tensor{tensors.FromFlatDataAndDimensions([]float32{
		0, 0, 1, 1,
		0, 0, 1, 1,
		1, 1, 0, 0,
		1, 1, 0, 0,
	}, 1, 4, 4, 1)}, nil)
	if err != nil {
		panic(err)
	}
	for _, ds := range []data.Dataset{data.Resize(square, 2, 2), data.CenterCrop(square, 2, 2)} {
		inputs, _, err := ds.Batch([]int{0})
		if err != nil {
			panic(err)
		}
		fmt.Printf("%.3f\n", tensors.MustCopyFlatData[float32](inputs[0]))
	}
	// Output:
	// [0.245 0.755 0.755 0.245]
	// [0.000 1.000 1.000 0.000]
}
