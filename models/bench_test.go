package models_test

import (
	"testing"

	"github.com/gomlx/gomlx/core/graph"

	"gonbatch/models"
)

// The gradient of a pool by itself, with the first pool's shape in the MNIST network. Compare with
// -cpu pinned: taskset -c 0 go test -bench PoolGradient ./models
func BenchmarkPoolGradient(b *testing.B) {
	x, weights := noise(1, 64, 28, 28, 32), noise(2, 64, 14, 14, 32)
	for _, bench := range []struct {
		name string
		pool func(*graph.Node) *graph.Node
	}{
		{"MaxPool2x2", models.MaxPool2x2},
		{"graph.MaxPool", builtin},
	} {
		b.Run(bench.name, func(b *testing.B) {
			exec, err := graph.NewExec(backend(b), func(x, weights *graph.Node) *graph.Node {
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

// One training step of the MNIST network, batch 64.
func BenchmarkMNISTStep(b *testing.B) {
	step := trainer(b, models.MNIST, 64)
	step()
	for b.Loop() {
		step()
	}
	b.ReportMetric(64*float64(b.N)/b.Elapsed().Seconds(), "img/s")
}
