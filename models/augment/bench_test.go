package augment_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"gonbatch/data"
	"gonbatch/models/augment"
	"gonbatch/models/cnn"
	"gonbatch/models/modelstest"
)

// pipelines are augmentations in the graph and on a worker.
var pipelines = []struct {
	name   string
	graph  function
	worker []data.Transform
}{
	{"crop", func(s *model.Scope, x *graph.Node) *graph.Node { return augment.RandomCrop(s, x, 4) }, []data.Transform{data.RandomCrop(4)}},
	{"flip", func(s *model.Scope, x *graph.Node) *graph.Node { return augment.RandomFlip(s, x, 0.5) }, []data.Transform{data.RandomFlip(0.5)}},
	{"normalize", func(_ *model.Scope, x *graph.Node) *graph.Node { return augment.Normalize(x, benchMean, benchStd) }, []data.Transform{data.Normalize(benchMean, benchStd)}},
	{"crop, flip, normalize", cropFlipNormalize, []data.Transform{data.RandomCrop(4), data.RandomFlip(0.5), data.Normalize(benchMean, benchStd)}},
	{"color", func(s *model.Scope, x *graph.Node) *graph.Node { return augment.RandomColor(s, x, 0.4, 0.4, 0.4) }, []data.Transform{data.RandomColor(0.4, 0.4, 0.4)}},
	{"resized crop", func(s *model.Scope, x *graph.Node) *graph.Node { return augment.RandomResizedCrop(s, x, 0.08) }, []data.Transform{data.RandomResizedCrop(0.08)}},
	{"all", func(s *model.Scope, x *graph.Node) *graph.Node {
		return augment.Normalize(augment.RandomColor(s, augment.RandomFlip(s, augment.RandomResizedCrop(s, x, 0.08), 0.5), 0.4, 0.4, 0.4), benchMean, benchStd)
	}, []data.Transform{data.RandomResizedCrop(0.08), data.RandomFlip(0.5), data.RandomColor(0.4, 0.4, 0.4), data.Normalize(benchMean, benchStd)}},
	{"mixup", func(s *model.Scope, x *graph.Node) *graph.Node { y, _ := augment.MixUp(s, x, 0.2); return y }, nil},
}

var benchMean, benchStd = []float32{0.5, 0.4, 0.3}, []float32{0.2, 0.3, 0.25}

func cropFlipNormalize(s *model.Scope, x *graph.Node) *graph.Node {
	return augment.Normalize(augment.RandomFlip(s, augment.RandomCrop(s, x, 4), 0.5), benchMean, benchStd)
}

// BenchmarkAugment compares augmentation in the graph with the same on a worker, and with a
// convolution of the same images to 64 channels. It reports the least processor time of a batch,
// which other work on the machine changes less than the time:
//
//	GOMAXPROCS=1 taskset -c 0 go test -run none -bench . ./models/augment
func BenchmarkAugment(b *testing.B) {
	for _, size := range [][]int{{128, 32, 32, 3}, {32, 224, 224, 3}} {
		name := func(what string) string { return fmt.Sprintf("%d of %dx%d/%s", size[0], size[1], size[2], what) }
		for _, p := range pipelines {
			b.Run(name(p.name+"/graph"), func(b *testing.B) { benchmarkGraph(b, size, p.graph) })
			if p.worker != nil {
				b.Run(name(p.name+"/worker"), func(b *testing.B) { benchmarkWorker(b, size, p.worker) })
			}
		}
		b.Run(name("convolution"), func(b *testing.B) {
			benchmarkGraph(b, size, func(s *model.Scope, x *graph.Node) *graph.Node {
				return cnn.Convolution(s, x).Channels(64).KernelSize(3).PadSame().Done()
			})
		})
	}
}

func benchmarkGraph(b *testing.B, size []int, f function) {
	p := compiled(b, true, func(s *model.Scope, x *graph.Node) []*graph.Node { return []*graph.Node{f(s, x)} })
	x := pixels(1, size...)
	p.next(b, x)
	leastTime(b, func() {
		outs, err := p.exec.Call(x)
		if err != nil {
			b.Fatal(err)
		}
		outs[0].MustFinalizeAll()
	})
}

func benchmarkWorker(b *testing.B, size []int, transforms []data.Transform) {
	values := modelstest.Values(b, pixels(1, size...))
	random := rand.New(rand.NewPCG(1, 2))
	leastTime(b, func() {
		for _, im := range images(slices.Clone(values), size) {
			for _, transform := range transforms {
				if err := transform(im, random); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}

// leastTime reports the least processor time of f.
func leastTime(b *testing.B, f func()) {
	least := time.Hour
	for b.Loop() {
		began := processorTime()
		f()
		least = min(least, processorTime()-began)
	}
	b.ReportMetric(float64(least.Microseconds())/1000, "cpu-ms")
}

func processorTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
