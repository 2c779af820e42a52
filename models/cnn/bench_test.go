package cnn_test

import (
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/layers/norm"
	"github.com/gomlx/gomlx/ml/model"

	"gonbatch/models/cnn"
	"gonbatch/models/modelstest"
)

// BenchmarkLayers computes the result and the gradients of a single layer. Compare with -cpu
// pinned:
//
//	taskset -c 0 go test -bench . ./models/cnn
func BenchmarkLayers(b *testing.B) {
	convolution := func(channels int) (ours, plain layer) {
		return func(scope *model.Scope, x *graph.Node) *graph.Node {
				return cnn.Convolution(scope, x).Channels(channels).KernelSize(3).PadSame().Done()
			}, func(scope *model.Scope, x *graph.Node) *graph.Node {
				return layers.Convolution(scope, x).Channels(channels).KernelSize(3).PadSame().Done()
			}
	}
	few, fewPlain := convolution(32)
	many, manyPlain := convolution(256)
	for _, bench := range []struct {
		name        string
		ours, plain layer
		size        []int
	}{
		{"pool", func(_ *model.Scope, x *graph.Node) *graph.Node { return cnn.MaxPool2x2(x) }, func(_ *model.Scope, x *graph.Node) *graph.Node { return builtin(x) }, []int{64, 28, 28, 32}},
		{"convolution of 1 channel", few, fewPlain, []int{64, 28, 28, 1}},
		{"convolution of 256 channels", many, manyPlain, []int{32, 8, 8, 256}},
		{"batch norm", func(scope *model.Scope, x *graph.Node) *graph.Node { return cnn.BatchNorm(scope, x).Done() },
			func(scope *model.Scope, x *graph.Node) *graph.Node { return norm.BatchNorm(scope, x, -1).Done() }, []int{32, 32, 32, 64}},
	} {
		b.Run(bench.name, func(b *testing.B) { benchmark(b, bench.ours, bench.size) })
		b.Run(bench.name+" of GoMLX", func(b *testing.B) { benchmark(b, bench.plain, bench.size) })
	}
}

func benchmark(b *testing.B, l layer, size []int) {
	tr, x := newTrained(b, l, true), modelstest.Noise(1, size...)
	for b.Loop() {
		outs, err := tr.exec.Call(x)
		if err != nil {
			b.Fatal(err)
		}
		for _, out := range outs {
			out.MustFinalizeAll()
		}
	}
}
