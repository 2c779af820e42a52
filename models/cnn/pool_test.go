package cnn_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/google/go-cmp/cmp"

	"gonbatch/models/cnn"
	"gonbatch/models/modelstest"
)

func builtin(x *graph.Node) *graph.Node { return graph.MaxPool(x).Window(2).Done() }

// pooled returns the result of pool on x, and its gradient for the given weights of the outputs.
func pooled(t *testing.T, pool func(*graph.Node) *graph.Node, x, weights *tensors.Tensor) (out, gradient *tensors.Tensor) {
	t.Helper()
	results, err := graph.CallOnceN(modelstest.Backend(t), func(x, weights *graph.Node) (out, gradient *graph.Node) {
		out = pool(x)
		return out, graph.Gradient(graph.ReduceAllSum(graph.Mul(out, weights)), x)[0]
	}, x, weights)
	if err != nil {
		t.Fatal(err)
	}
	return results[0], results[1]
}

func TestMaxPool2x2EqualsGoMLX(t *testing.T) {
	for _, size := range [][]int{{2, 4, 6, 3}, {1, 2, 2, 1}, {3, 28, 28, 8}, {2, 5, 4, 3}, {2, 4, 5, 3}, {2, 7, 3, 2}} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			x := modelstest.Noise(1, size...)
			weights := modelstest.Noise(2, size[0], size[1]/2, size[2]/2, size[3])
			wantOut, wantGradient := pooled(t, builtin, x, weights)
			out, gradient := pooled(t, cnn.MaxPool2x2, x, weights)
			if !out.Shape().Equal(wantOut.Shape()) {
				t.Fatalf("shape %s, want %s", out.Shape(), wantOut.Shape())
			}
			if diff := cmp.Diff(tensors.MustCopyFlatData[float32](wantOut), tensors.MustCopyFlatData[float32](out)); diff != "" {
				t.Errorf("output (-GoMLX +ours):\n%s", diff)
			}
			if diff := cmp.Diff(tensors.MustCopyFlatData[float32](wantGradient), tensors.MustCopyFlatData[float32](gradient)); diff != "" {
				t.Errorf("gradient (-GoMLX +ours):\n%s", diff)
			}
		})
	}
}

func TestMaxPool2x2SharesTies(t *testing.T) {
	tests := []struct {
		name     string
		window   []float32
		out      float32
		gradient []float32
	}{
		{name: "no tie", window: []float32{1, 2, 3, 4}, out: 4, gradient: []float32{0, 0, 0, 12}},
		{name: "two", window: []float32{4, 2, 3, 4}, out: 4, gradient: []float32{6, 0, 0, 6}},
		{name: "three", window: []float32{5, 5, 3, 5}, out: 5, gradient: []float32{4, 4, 0, 4}},
		{name: "background", window: []float32{-7, -7, -7, -7}, out: -7, gradient: []float32{3, 3, 3, 3}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			x := tensors.FromFlatDataAndDimensions(tc.window, 1, 2, 2, 1)
			out, gradient := pooled(t, cnn.MaxPool2x2, x, tensors.FromFlatDataAndDimensions([]float32{12}, 1, 1, 1, 1))
			if diff := cmp.Diff([]float32{tc.out}, tensors.MustCopyFlatData[float32](out)) + cmp.Diff(tc.gradient, tensors.MustCopyFlatData[float32](gradient)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWrongShapes(t *testing.T) {
	pool := func(x *graph.Node) *graph.Node { return cnn.MaxPool2x2(x) }
	tests := []struct {
		name string
		size []int
		want string
	}{
		{"a vector", []int{4}, "cnn.MaxPool2x2: x has shape (Float32)[4]; it must be [batch, height, width, channels]"},
		{"no channels", []int{1, 4, 4}, "it must be [batch, height, width, channels]"},
		{"one row", []int{2, 1, 4, 3}, "(Float32)[2, 1, 4, 3]; height and width must be at least 2"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			_, err := graph.CallOnce(modelstest.Backend(t), pool, modelstest.Noise(1, tc.size...))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}
