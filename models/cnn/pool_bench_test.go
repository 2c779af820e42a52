package cnn_test

import (
	"testing"

	"github.com/gomlx/gomlx/core/graph"

	"gonbatch/models/cnn"
	"gonbatch/models/modelstest"
)

// The gradient of a pool by itself, with the first pool's shape in the MNIST network. Compare with
// -cpu pinned: taskset -c 0 go test -bench PoolGradient ./models/cnn
func BenchmarkPoolGradient(b *testing.B) {
	x, weights := modelstest.Noise(1, 64, 28, 28, 32), modelstest.Noise(2, 64, 14, 14, 32)
	for _, bench := range []struct {
		name string
		pool func(*graph.Node) *graph.Node
	}{
		{"MaxPool2x2", cnn.MaxPool2x2},
		{"graph.MaxPool", builtin},
	} {
		b.Run(bench.name, func(b *testing.B) {
			exec, err := graph.NewExec(modelstest.Backend(b), func(x, weights *graph.Node) *graph.Node {
				return graph.Gradient(graph.ReduceAllSum(graph.Mul(bench.pool(x), weights)), x)[0]
			})
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				out, err := exec.Call(x, weights)
				if err != nil {
					b.Fatal(err)
				}
				out[0].MustFinalizeAll()
			}
		})
	}
}
