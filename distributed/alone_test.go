package distributed_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"gonbatch/distributed"
	"gonbatch/distributed/ranktest"
	"gonbatch/internal/solo"
)

// TestAlone: other ranks learn what a rank does by itself, and of each program that it compiles and
// each batch that it evaluates.
func TestAlone(t *testing.T) {
	w := initWorld(t)
	boom := errors.New("boom")
	err := w.Alone("unpacks", func() error {
		if work, _ := solo.Now(); work.What != "unpacks" {
			t.Errorf("in Alone, the work is %q", work.What)
		}
		return boom
	})
	if work, _ := solo.Now(); work.What != "" || !errors.Is(err, boom) {
		t.Errorf("after Alone, the work is %q and the error %v", work.What, err)
	}
	_ = w.OnMain(func() error {
		if work, _ := solo.Now(); !strings.HasPrefix(work.What, "OnMain at alone_test.go:") {
			t.Errorf("in OnMain, the work is %q", work.What)
		}
		return nil
	})

	exec := graph.MustNewExec(w.Backend(), func(x *graph.Node) *graph.Node { return graph.OnePlus(x) })
	start := time.Now()
	if _, err := exec.Compile(shapes.Make(dtypes.Float32, 3)); err != nil {
		t.Fatal(err)
	}
	if _, moved := solo.Now(); moved.Before(start) {
		t.Error("compiling isn't work of its own")
	}
	for _, err := range w.Batches(ranktest.Blobs(10), 0, 10, distributed.EvaluateOptions{BatchSize: 3}) {
		if _, moved := solo.Now(); err != nil || moved.Before(start) {
			t.Errorf("a batch advances nothing; %v", err)
		}
		start = time.Now()
	}
}
