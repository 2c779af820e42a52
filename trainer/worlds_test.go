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
	"sync"
	"testing"
	"time"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/gomlx/gomlx/ml/train/metric"

	"gonbatch/data"
	"gonbatch/distributed/ranktest"
	"gonbatch/internal/plural"
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
	Begin   []float64          // Of one device: the weights after the first update.
	Logged  map[string]float64 // By rank 0.
	Batches [][]int            // Of PredictOnMain, on rank 0.
}

const ordersFolder = "TRAINER_TEST_ORDERS"

// work is an order to all ranks of a world.
type work interface {
	carryOut(t *testing.T) outcome
}

// addressed is an order, with the name of the world that takes it. One without a name is for all,
// and ends them.
type addressed[O work] struct {
	World string
	Order O
}

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

// worldKind is what starts the ranks of a world, and their number.
type worldKind struct {
	launcher       ranktest.Launcher
	ranks, devices int
}

func (k worldKind) String() string {
	return fmt.Sprintf("%s, %s, %s", plural.Of(k.ranks, "rank"), plural.Of(k.devices, "device"), k.launcher)
}

// overTCP is a world of ranks with one device.
func overTCP(ranks int) worldKind { return worldKind{ranktest.Torchrun, ranks, 1} }

// worlds are running ranks that take orders.
type worlds[O work] struct {
	folder  string
	orders  int
	ctx     context.Context
	end     context.CancelCauseFunc
	running map[string]bool
	ranks   sync.WaitGroup
}

// newWorlds returns worlds whose ranks run this test. They end with it.
func newWorlds[O work](t *testing.T) *worlds[O] {
	t.Helper()
	ctx, end := context.WithCancelCause(t.Context())
	w := &worlds[O]{folder: t.TempDir(), ctx: ctx, end: end, running: map[string]bool{}}
	t.Cleanup(func() {
		writeWhole(t, orderFile(w.folder, w.orders), addressed[O]{})
		w.ranks.Wait()
		end(nil)
	})
	return w
}

// start starts a world, unless it runs already.
func (w *worlds[O]) start(t *testing.T, kind worldKind) {
	if w.running[kind.String()] {
		return
	}
	env := []string{ordersFolder + "=" + w.folder, worldName + "=" + kind.String(), firstOrder + "=" + strconv.Itoa(w.orders), fmt.Sprint("GONBATCH_DEVICES=", kind.devices)}
	ranktest.NeedGPUs(t, kind.ranks, env)
	w.running[kind.String()] = true
	w.ranks.Go(func() {
		out, err := ranktest.Start(t, kind.launcher, kind.ranks, env)
		w.end(fmt.Errorf("the world of %s has ended: %w\n%s", kind, err, out))
	})
}

// do lets a world execute an order, and returns each rank's outcome.
func (w *worlds[O]) do(t *testing.T, kind worldKind, o O) []outcome {
	t.Helper()
	w.start(t, kind)
	writeWhole(t, orderFile(w.folder, w.orders), addressed[O]{kind.String(), o})
	all := make([]outcome, kind.ranks)
	for rank := range all {
		await(t, w.ctx, outcomePath(w.folder, w.orders, rank), &all[rank])
	}
	w.orders++
	return all
}

const (
	worldName  = "TRAINER_TEST_WORLD"
	firstOrder = "TRAINER_TEST_FIRST"
)

// obey is a rank of a world: it takes orders until one is for all.
func obey[O work](t *testing.T) {
	folder := os.Getenv(ordersFolder)
	first, err := strconv.Atoi(os.Getenv(firstOrder))
	if err != nil {
		t.Fatal(err)
	}
	for n := first; ; n++ {
		var o addressed[O]
		await(t, t.Context(), orderFile(folder, n), &o)
		switch o.World {
		case "":
			return
		case os.Getenv(worldName):
			writeWhole(t, outcomePath(folder, n, world(t).Rank()), o.Order.carryOut(t))
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
// TRAINER_SEEDS, or else the default; with -short, a third of it.
func seeds(t *testing.T, byDefault int) int {
	t.Helper()
	text := os.Getenv("TRAINER_SEEDS")
	switch {
	case text == "" && testing.Short():
		return (byDefault + 2) / 3
	case text == "":
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
