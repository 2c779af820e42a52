package trainer_test

import (
	"errors"
	"runtime"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/model"

	"gonbatch/distributed/ranktest"
	"gonbatch/trainer"
)

// TestSweepNeedsNoMemory: a training run that has ended, or failed, leaves no copy of its weights
// in memory, even while the world is open.
func TestSweepNeedsNoMemory(t *testing.T) {
	const width = 1 << 14
	wide := func(scope *model.Scope, x *graph.Node) *graph.Node {
		x = graph.Reshape(x, x.Shape().Dimensions[0], -1)
		return layers.Dense(scope.In("logits"), layers.Dense(scope.In("wide"), x, true, width), true, ranktest.Classes)
	}
	snapshot := int64(3 * 4 * width * (ranktest.Side*ranktest.Side + ranktest.Classes)) // Weights and Adam's two moments, float32.
	fit := func(options ...trainer.Option) {
		c := trainer.Config{MaxSteps: 4, BatchSize: 12, Loggers: []string{"none"}, Checkpoint: trainer.CheckpointConfig{Dir: t.TempDir(), EverySteps: 1}}
		tr, _ := newTrainer(t, c, blobTask(wide), options...)
		if err := tr.Fit(t.Context(), ranktest.Blobs(145), nil); err != nil && !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
	}
	inUse := func() int64 {
		var m runtime.MemStats
		for range 3 { // Finalizers first.
			runtime.GC()
		}
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	fit()
	before := inUse()
	for range 2 {
		fit()
		fit(killAt(3))
	}
	if grown := inUse() - before; grown > 2*snapshot {
		t.Errorf("four training runs leave %d MB in memory, a snapshot has %d MB", grown>>20, snapshot>>20)
	}
}
