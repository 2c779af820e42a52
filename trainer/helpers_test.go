package trainer_test

import (
	"bytes"
	"encoding/gob"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/layers/activation"
	"github.com/gomlx/gomlx/ml/layers/norm"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/gomlx/gomlx/ml/train/metric"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"gonbatch/distributed"
	"gonbatch/distributed/ranktest"
	"gonbatch/trainer"
)

// smallNet has everything that makes resuming hard: dropout draws random numbers, batch
// normalization keeps moving averages.
func smallNet(scope *model.Scope, x *graph.Node) *graph.Node {
	x = graph.Reshape(x, x.Shape().Dimensions[0], -1)
	x = layers.Dense(scope.In("first"), x, true, 16)
	x = activation.Relu(norm.BatchNorm(scope.In("norm"), x, -1).Done())
	x = layers.DropoutStatic(scope.In("dropout"), x, 0.2)
	return layers.Dense(scope.In("logits"), x, true, ranktest.Classes)
}

// plainNet gives the same results on any number of ranks.
func plainNet(scope *model.Scope, x *graph.Node) *graph.Node {
	x = graph.Reshape(x, x.Shape().Dimensions[0], -1)
	x = graph.Tanh(layers.Dense(scope.In("hidden"), x, true, 16))
	return layers.Dense(scope.In("logits"), x, true, ranktest.Classes)
}

func blobTask(net func(*model.Scope, *graph.Node) *graph.Node) trainer.Task {
	accuracy := metric.NewSparseCategoricalAccuracy("Mean Accuracy", "#acc")
	return trainer.Supervised(net, loss.SparseCategoricalCrossEntropyLogits, optimizer.Adam().LearningRate(0.01).Done(), accuracy)
}

var theWorld = sync.OnceValues(distributed.Init)

// world returns the only world of this process.
func world(t *testing.T) *distributed.World {
	t.Helper()
	w, err := theWorld()
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestMain(m *testing.M) {
	flag.Parse()
	ranktest.CompileQuickly()
	ranktest.SharePrograms()
	code := m.Run()
	if ranktest.InRank() {
		if w, err := theWorld(); err == nil {
			if err := w.Close(); err != nil {
				println(err.Error())
				code = 1
			}
		}
	}
	os.Exit(code)
}

// newTrainer returns the first trainer of a program that has just started.
func newTrainer(t *testing.T, c trainer.Config, task trainer.Task, options ...trainer.Option) (*trainer.Trainer, *bytes.Buffer) {
	t.Helper()
	trainer.NewProcess()
	return anotherTrainer(t, c, task, options...)
}

// anotherTrainer returns another trainer in the same program.
func anotherTrainer(t *testing.T, c trainer.Config, task trainer.Task, options ...trainer.Option) (*trainer.Trainer, *bytes.Buffer) {
	t.Helper()
	var out bytes.Buffer
	tr, err := trainer.New(world(t), c, task, append([]trainer.Option{trainer.WithOutput(&out)}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // Otherwise it may still write while the test's folders are removed.
		if l := tr.Logger(); l != nil {
			_ = l.Close() // It is closed with the world too.
		}
	})
	return tr, &out
}

// weights returns all variables that a training run leaves, except those of metrics and gradients.
func weights(t *testing.T, store *model.Store) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	for v := range store.IterVariables() {
		if !v.HasValue() || len(v.Path()) > 8 && v.Path()[:8] == "/metrics" {
			continue
		}
		err := v.MustValue().ConstBytes(func(data []byte) { all[v.Path()] = bytes.Clone(data) })
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func writeGob(t *testing.T, path string, value any) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(gob.NewEncoder(f).Encode(value), f.Close()); err != nil {
		t.Fatal(err)
	}
}

func readGob(t *testing.T, path string, value any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := gob.NewDecoder(bytes.NewReader(data)).Decode(value); err != nil {
		t.Fatal(err)
	}
}

// compareWeights checks that the weights are bit-identical.
func compareWeights(t *testing.T, got, want map[string][]byte) {
	t.Helper()
	if len(got) != len(want) || len(want) < 4 {
		t.Fatalf("%d variables, want %d", len(got), len(want))
	}
	for path, bits := range want {
		if !bytes.Equal(got[path], bits) {
			t.Errorf("%s differs", path)
		}
	}
}

func tempFile(t *testing.T, name string) string { return filepath.Join(t.TempDir(), name) }
