package trainer_test

import (
	"errors"
	"math"
	"path"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train/loss"

	"gonbatch/distributed/ranktest"
	"gonbatch/trainer"
)

const normScope = "/gradient_norms"

// keepNorms returns a change of the gradients that leaves them as they are, and keeps the norm of
// those of each layer in a variable.
func keepNorms(store *model.Store) trainer.GradientFn {
	return func(variables []*model.Variable, gradients []*graph.Node) []*graph.Node {
		squares := map[string]*graph.Node{}
		for i, v := range variables {
			square := graph.ReduceAllSum(graph.Square(gradients[i]))
			if sum := squares[v.Scope()]; sum != nil {
				square = graph.Add(sum, square)
			}
			squares[v.Scope()] = square
			norm := store.Scope(path.Join(normScope, v.Scope())).VariableWithValue("norm", float32(0)).SetTrainable(false)
			norm.SetNodeValue(graph.Sqrt(square)) // The last weight of the layer has the whole sum.
		}
		return gradients
	}
}

// norms returns the norms of the newest update, by layer.
func norms(store *model.Store) (map[string]float64, error) {
	all := map[string]float64{}
	for v := range store.IterVariables() {
		layer, ok := strings.CutPrefix(v.Scope(), normScope)
		if !ok {
			continue
		}
		value, err := v.Value()
		if err != nil {
			return nil, err
		}
		all["gradient_norm"+layer] = float64(tensors.ToScalar[float32](value))
	}
	return all, nil
}

// logNorms returns a callback that logs the norms after each update.
func logNorms(store *model.Store) trainer.Callback {
	return trainer.Callback{Name: "gradient norms", BatchEnd: func(e *trainer.Event) error {
		all, err := norms(store)
		if l := e.Trainer.Logger(); l != nil && err == nil { // Only rank 0 has one.
			err = l.Scalars(e.Step, all)
		}
		return err
	}}
}

// layerNorm returns the norm of what an update changes in a layer.
func layerNorm(before, after []float64) float64 {
	sum := 0.0
	for i := range before {
		sum += (after[i] - before[i]) * (after[i] - before[i])
	}
	return math.Sqrt(sum)
}

// TestGradientNorms: WithGradients and a callback log the norm of each layer's gradients, which is
// that of its change by SGD, and leave the training as it is. A training run that is killed
// resumes.
func TestGradientNorms(t *testing.T) { everywhere(t, testGradientNorms) }

func testGradientNorms(t *testing.T) {
	const rate, steps = 0.1, 6
	layers := []string{"/hidden/dense", "/logits/dense"}
	c := trainer.Config{BatchSize: 12, MaxSteps: steps, Seed: 5, Checkpoint: trainer.CheckpointConfig{EverySteps: 2, Dir: t.TempDir()}}
	plain, _ := newTrainer(t, trainer.Config{BatchSize: 12, MaxSteps: steps, Seed: 5, Checkpoint: trainer.CheckpointConfig{Off: true}}, sgdTask(rate))
	mustFit(t, plain)
	var tr *trainer.Trainer
	for _, kill := range []int64{3, 0} {
		store, log, before := model.NewStore(), &ledger{map[string]float64{}}, map[string][]float64{}
		compare := trainer.Callback{
			Name:       "compare",
			BatchStart: func(e *trainer.Event) error { copyLayers(t, e, layers, before); return nil },
			BatchEnd: func(e *trainer.Event) error {
				got, err := norms(store)
				for _, layer := range layers {
					want := layerNorm(before[layer], trainedFloats(t, e.Trainer, layer)) / rate
					if known := len(before[layer]) > 0; known && !(math.Abs(got["gradient_norm"+layer]-want) < 1e-3*want) { // Before the first step, there are no weights.
						t.Errorf("step %d, %s: the norm is %g, want %g", e.Step, layer, got["gradient_norm"+layer], want)
					}
				}
				return err
			},
		}
		tr, _ = newTrainer(t, c, sgdTask(rate), trainer.WithStore(store), trainer.WithLogger(log),
			trainer.WithGradients(keepNorms(store)), trainer.WithCallbacks(logNorms(store), compare), killAt(kill))
		if err := tr.Fit(t.Context(), ranktest.Blobs(145), nil); err != nil && (kill == 0 || !errors.Is(err, errKilled)) {
			t.Fatal(err)
		}
		if l := tr.Logger(); l != nil && kill == 0 {
			if err := l.Close(); err != nil || !(log.logged["gradient_norm/logits/dense at 6"] > 0) {
				t.Errorf("it has logged %v, %v", log.logged, err)
			}
		}
	}
	if d := distance(floats(t, tr), floats(t, plain)); !(d < 1e-6) {
		t.Errorf("the weights differ by %g", d)
	}
}

func copyLayers(t *testing.T, e *trainer.Event, layers []string, to map[string][]float64) {
	for _, layer := range layers {
		to[layer] = trainedFloats(t, e.Trainer, layer)
	}
}

// TestUnreached: a layer that no gradient reaches is named, once.
func TestUnreached(t *testing.T) {
	flat := func(x *graph.Node) *graph.Node { return graph.Reshape(x, x.Shape().Dim(0), -1) }
	for name, test := range map[string]struct {
		net  func(*model.Scope, *graph.Node) *graph.Node
		want []string
	}{
		"all": {func(scope *model.Scope, x *graph.Node) *graph.Node {
			return layers.Dense(scope.In("logits"), layers.Dense(scope.In("hidden"), flat(x), true, 8), true, ranktest.Classes)
		}, nil},
		"detached": {func(scope *model.Scope, x *graph.Node) *graph.Node {
			return layers.Dense(scope.In("logits"), graph.StopGradient(layers.Dense(scope.In("hidden"), flat(x), true, 8)), true, ranktest.Classes)
		}, []string{"no gradient reaches ", "/hidden/dense/weights", "/hidden/dense/biases"}},
		"teacher": {func(scope *model.Scope, x *graph.Node) *graph.Node {
			teacher := scope.VariableWithValue("teacher", float32(1))
			value := teacher.NodeValue(x)
			teacher.SetNodeValue(graph.MulScalar(value, 0.9))
			return layers.Dense(scope.In("logits"), graph.Mul(flat(x), graph.StopGradient(value)), true, ranktest.Classes)
		}, nil},
		"unused": {func(scope *model.Scope, x *graph.Node) *graph.Node {
			layers.Dense(scope.In("spare"), flat(x), false, 8)
			return layers.Dense(scope.In("logits"), flat(x), true, ranktest.Classes)
		}, []string{"no gradient reaches /spare/dense/weights"}},
	} {
		for _, accumulate := range []int{1, 2} {
			c := trainer.Config{MaxEpochs: 1, BatchSize: 12, AccumulateGradBatches: accumulate, Loggers: []string{"none"}, Checkpoint: trainer.CheckpointConfig{Off: true}}
			tr, out := newTrainer(t, c, trainer.Supervised(test.net, loss.SparseCategoricalCrossEntropyLogits, plainSGD(0.1)))
			if err := tr.Fit(t.Context(), ranktest.Blobs(48), nil); err != nil {
				t.Fatal(err)
			}
			said := strings.Count(out.String(), "no gradient reaches")
			for _, want := range test.want {
				if said != 1 || !strings.Contains(out.String(), want) {
					t.Errorf("%s: want %q in %s", name, want, out)
				}
			}
			if said > 0 && test.want == nil {
				t.Errorf("%s: %s", name, out)
			}
		}
	}
}
