package trainer_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/gomlx/gomlx/ml/train/metric"

	"gonbatch/data"
	"gonbatch/distributed/ranktest"
	"gonbatch/trainer"
)

// The randomized tests start many training runs on worlds of several sizes. Starting processes for
// each of them would take most of the time, so the ranks of a world stay alive, and take one order
// after the other from a folder, as files.

// order is one start of a training run, or one evaluation, on the world of a size.
type order struct {
	Ranks      int
	Config     trainer.Config
	Examples   int
	Validation int   // Examples; 0 for none.
	Kill       int64 // The update after which all ranks end abruptly; 0 for none.
	Stop       int64 // The update after which a person stops them; -1 for before Fit.
	Again      bool  // After they were stopped, the same trainers fit again.
	End        int64 // The update after which a callback ends the training.
	Test       int   // Examples to evaluate afterwards; 0 for none.
	Momentum   float64
}

// outcome is a rank's result of an order.
type outcome struct {
	Error   string
	Step    int64
	Metrics map[string]float64 // Of the evaluation.
	Weights []float64          // Of rank 0: their averages, if there are any.
}

const ordersFolder = "TRAINER_TEST_ORDERS"

func orderFile(folder string, n int) string { return filepath.Join(folder, fmt.Sprint("order-", n)) }

func outcomePath(folder string, n, rank int) string {
	return filepath.Join(folder, fmt.Sprintf("outcome-%d-%d", n, rank))
}

// writeWhole atomically writes a file that others wait for.
func writeWhole(t *testing.T, path string, value any) {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(path+".tmp", data, 0o644), os.Rename(path+".tmp", path)); err != nil {
		t.Fatal(err)
	}
}

// await waits for a file that another process writes, and reads it.
func await(t *testing.T, ctx context.Context, path string, into any) {
	t.Helper()
	for {
		data, err := os.ReadFile(path)
		if err == nil {
			if err := json.Unmarshal(data, into); err != nil {
				t.Fatal(err)
			}
			return
		}
		if !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		if ctx.Err() != nil {
			t.Fatalf("no %s: %v", path, context.Cause(ctx))
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// worlds are running ranks that take orders.
type worlds struct {
	folder string
	orders int
	ctx    context.Context
}

// startWorlds starts a world of each size, whose ranks run this test; they end with the test.
func startWorlds(t *testing.T, sizes ...int) *worlds {
	t.Helper()
	ctx, end := context.WithCancelCause(t.Context())
	w := &worlds{folder: t.TempDir(), ctx: ctx}
	ended := make(chan struct{}, len(sizes))
	for _, size := range sizes {
		go func() {
			out, err := ranktest.Start(t, ranktest.Torchrun, size, []string{ordersFolder + "=" + w.folder, "GONBATCH_DEVICES=1"})
			end(fmt.Errorf("the world of %d has ended: %w\n%s", size, err, out))
			ended <- struct{}{}
		}()
	}
	t.Cleanup(func() {
		writeWhole(t, orderFile(w.folder, w.orders), order{})
		for range sizes {
			<-ended
		}
		end(nil)
	})
	return w
}

// do executes an order, and returns each rank's outcome.
func (w *worlds) do(t *testing.T, o order) []outcome {
	t.Helper()
	writeWhole(t, orderFile(w.folder, w.orders), o)
	all := make([]outcome, o.Ranks)
	for rank := range all {
		await(t, w.ctx, outcomePath(w.folder, w.orders, rank), &all[rank])
	}
	w.orders++
	return all
}

// obey is a rank of a world: it takes orders until one is empty.
func obey(t *testing.T) {
	folder := os.Getenv(ordersFolder)
	for n := 0; ; n++ {
		var o order
		await(t, t.Context(), orderFile(folder, n), &o)
		switch o.Ranks {
		case 0:
			return
		case world(t).Size():
			writeWhole(t, outcomePath(folder, n, world(t).Rank()), o.carryOut(t))
		}
	}
}

func (o order) carryOut(t *testing.T) outcome {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	at := trainer.Callback{Name: "disturbance", BatchEnd: func(e *trainer.Event) error {
		switch {
		case o.Stop > 0 && e.Step == o.Stop:
			cancel()
		case o.End > 0 && e.Step == o.End:
			e.Stop("enough")
		case o.Kill > 0 && e.Step == o.Kill:
			return errKilled
		}
		return nil
	}}
	accuracy := metric.NewSparseCategoricalAccuracy("Mean Accuracy", "#acc")
	task := trainer.Supervised(oneLayer, loss.SparseCategoricalCrossEntropyLogits, trainer.SGD{LearningRate: 0.05, Momentum: o.Momentum}, accuracy)
	tr, _ := newTrainer(t, o.Config, task, trainer.WithCallbacks(at))
	var result outcome
	var validation data.Dataset
	if o.Validation > 0 {
		validation = ranktest.Blobs(o.Validation)
	}
	if o.Stop < 0 {
		cancel()
	}
	err := tr.Fit(ctx, ranktest.Blobs(o.Examples), validation)
	var stopped *trainer.StoppedError
	if o.Again && errors.As(err, &stopped) {
		err = tr.Fit(t.Context(), ranktest.Blobs(o.Examples), validation)
	}
	if err == nil && o.Test > 0 {
		var metrics trainer.Metrics
		metrics, err = tr.Test(t.Context(), ranktest.Blobs(o.Test))
		result.Metrics = metrics
	}
	if err == nil && o.Config.EMADecay > 0 {
		err = tr.LoadAverage()
	}
	if !o.Config.Checkpoint.Off {
		err = errors.Join(err, tr.WaitForCheckpoints())
	}
	if err != nil && !errors.Is(err, errKilled) && !errors.As(err, &stopped) {
		result.Error = err.Error()
	}
	result.Step = tr.Step()
	if tr.World().IsMain() && err == nil {
		result.Weights = floats(t, tr)
	}
	return result
}

// oneLayer is the smallest network, because most of the time goes into its compilation.
func oneLayer(scope *model.Scope, x *graph.Node) *graph.Node {
	x = graph.Reshape(x, x.Shape().Dimensions[0], -1)
	return layers.Dense(scope.In("logits"), x, true, ranktest.Classes)
}

// seeds returns the number of random cases that a test tries: the environment variable
// TRAINER_SEEDS, or else the default.
func seeds(t *testing.T, byDefault int) int {
	t.Helper()
	text := os.Getenv("TRAINER_SEEDS")
	if text == "" {
		return byDefault
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("TRAINER_SEEDS=%q: %v", text, err)
	}
	return n
}

// chunk is the number of cases that one set of worlds serves.
const chunk = 25
