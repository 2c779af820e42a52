package augment_test

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"gonbatch/data"
	"gonbatch/models/augment"
)

func sizing(height, width int) function {
	return func(_ *model.Scope, x *graph.Node) *graph.Node { return augment.Resize(x, height, width) }
}

func centering(height, width int) function {
	return func(_ *model.Scope, x *graph.Node) *graph.Node { return augment.CenterCrop(x, height, width) }
}

// TestResize compares with PyTorch's interpolate and torchvision's center_crop, in each type, in
// training and elsewhere. data/testdata/resize.py wrote what they make of two images.
func TestResize(t *testing.T) {
	content, err := os.ReadFile("../../data/testdata/resize.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []struct {
		Function string
		From, To []int
		Pixels   []float32
	}
	if err := json.Unmarshal(content, &all); err != nil {
		t.Fatal(err)
	}
	for _, tt := range all {
		pixels := make([]float32, 2*tt.From[0]*tt.From[1]*tt.From[2])
		for i := range pixels {
			pixels[i] = float32(37*i%101) / 100
		}
		x := tensors.FromFlatDataAndDimensions(pixels, 2, tt.From[0], tt.From[1], tt.From[2])
		for i, dtype := range []dtypes.DType{dtypes.Float32, dtypes.BFloat16, dtypes.Float16, dtypes.Float64} {
			t.Run(fmt.Sprint(tt.Function, tt.From, tt.To, dtype), func(t *testing.T) {
				f := map[string]func(height, width int) function{"Resize": sizing, "CenterCrop": centering}[tt.Function](tt.To[0], tt.To[1])
				p := compiled(t, i%2 == 0, func(s *model.Scope, x *graph.Node) []*graph.Node {
					y := f(s, graph.ConvertDType(x, dtype))
					if y.DType() != dtype {
						t.Errorf("the type is %s, want %s", y.DType(), dtype)
					}
					return []*graph.Node{graph.ConvertDType(y, dtypes.Float32)}
				})
				compare(t, p.next(t, x)[0], tt.Pixels, 2*tolerance(dtype, false)) // The images are rounded too.
			})
		}
	}
}

// TestResizeSameAsWorker compares sizes of photos with data.Resize.
func TestResizeSameAsWorker(t *testing.T) {
	size := []int{2, 60, 47, 3}
	x := pixels(1, size...)
	ds, err := data.Tensors("photos", []*tensors.Tensor{x}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, to := range [][2]int{{32, 32}, {64, 96}, {17, 47}, {1, 1}} {
		inputs, _, err := data.Resize(ds, to[0], to[1]).Batch([]int{0, 1})
		if err != nil {
			t.Fatal(err)
		}
		p := compiled(t, true, func(s *model.Scope, x *graph.Node) []*graph.Node { return []*graph.Node{sizing(to[0], to[1])(s, x)} })
		compare(t, p.next(t, x)[0], tensors.MustCopyFlatData[float32](inputs[0]), 1e-5)
	}
}
