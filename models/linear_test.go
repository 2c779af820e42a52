package models_test

import (
	"slices"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/models"
	"gonbatch/models/modelstest"
)

// TestPartsGradients: the gradients of two losses over some of the parts are their own.
func TestPartsGradients(t *testing.T) {
	exec := graph.MustNewExec(modelstest.Backend(t), func(x *graph.Node) []*graph.Node {
		x = graph.Reshape(x, 1, 1, 3, 1, 1)
		p := models.Parts(x)
		all := graph.Gradient(graph.ReduceAllSum(graph.Add(graph.Mul(p[0], p[1]), p[2])), x)[0]
		one := graph.Gradient(graph.ReduceAllSum(graph.Square(p[0])), x)[0]
		return []*graph.Node{all, one}
	})
	out := exec.MustCall([]float32{2, 3, 5})
	for i, want := range [][]float32{{3, 2, 1}, {4, 0, 0}} {
		if got := tensors.MustCopyFlatData[float32](out[i]); !slices.Equal(got, want) {
			t.Errorf("loss %d: the gradient is %v, want %v", i, got, want)
		}
	}
}
