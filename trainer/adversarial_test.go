package trainer_test

import (
	"maps"
	"math"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"gonbatch/distributed/ranktest"
	"gonbatch/logger"
	"gonbatch/trainer"
)

func objective(name, scope string) trainer.Objective {
	return trainer.Objective{Name: name, Scope: scope, Optimizer: optimizer.StochasticGradientDescent().WithLearningRate(0.5).WithDecay(false).Done()}
}

// pullApart has two models of one number each: a tries to equal b, and b tries to be one more than
// a.
func pullApart(scope *model.Scope, inputs, _ []*graph.Node) []*graph.Node {
	g := inputs[0].Graph()
	a := scope.In("a").VariableWithValue("x", float32(4)).NodeValue(g)
	b := scope.In("b").VariableWithValue("x", float32(0)).NodeValue(g)
	one := graph.Scalar(g, dtypes.Float32, 1)
	return []*graph.Node{
		graph.MulScalar(graph.Square(graph.Sub(a, b)), 0.5),
		graph.MulScalar(graph.Square(graph.Sub(b, graph.Add(a, one))), 0.5),
	}
}

// TestAdversarial: each optimizer changes only its own model, all starting from the same weights.
func TestAdversarial(t *testing.T) {
	task := trainer.Adversarial(pullApart, objective("first", "/a"), objective("second", "/b"))
	var got [][2]float64
	record := trainer.Callback{Name: "record", BatchEnd: func(e *trainer.Event) error {
		at := func(path string) float64 {
			return float64(tensors.ToScalar[float32](e.Trainer.Store().GetVariable(path).MustValue()))
		}
		got = append(got, [2]float64{at("/a/x"), at("/b/x")})
		return nil
	}}
	tr, _ := newTrainer(t, trainer.Config{MaxSteps: 5, BatchSize: 12}, task, trainer.WithCallbacks(record))
	if err := tr.Fit(t.Context(), ranktest.Blobs(145), nil); err != nil {
		t.Fatal(err)
	}
	a, b := 4.0, 0.0
	for i, pair := range got {
		a, b = a-0.5*(a-b), b-0.5*(b-(a+1)) // Go evaluates both before it assigns, as the step must.
		if math.Abs(pair[0]-a) > 1e-5 || math.Abs(pair[1]-b) > 1e-5 {
			t.Fatalf("update %d: a, b = %v, want %g, %g", i+1, pair, a, b)
		}
	}
	if tr.Step() != 5 || optimizer.GetGlobalStep(tr.Store()) != 5 {
		t.Errorf("step %d, global step %d, want 5: an update counts once, whatever the number of optimizers", tr.Step(), optimizer.GetGlobalStep(tr.Store()))
	}
}

func TestAdversarialLosses(t *testing.T) {
	one := func(scope *model.Scope, inputs, labels []*graph.Node) []*graph.Node {
		return pullApart(scope, inputs, labels)[:1]
	}
	tr, _ := newTrainer(t, trainer.Config{MaxSteps: 1, BatchSize: 12}, trainer.Adversarial(one, objective("first", "/a"), objective("second", "/b")))
	if err := tr.Fit(t.Context(), ranktest.Blobs(145), nil); err == nil || !strings.Contains(err.Error(), "1 loss for 2 objectives") {
		t.Errorf("got %v, want the numbers of losses and objectives", err)
	}
}

// TestAdversarialDecay: an optimizer that slows down with the number of updates counts each update
// once, whatever its position among the optimizers.
func TestAdversarialDecay(t *testing.T) {
	alike := func(scope *model.Scope, inputs, _ []*graph.Node) []*graph.Node {
		var losses []*graph.Node
		for _, name := range []string{"a", "b"} {
			losses = append(losses, graph.Square(scope.In("%s", name).VariableWithValue("x", float32(4)).NodeValue(inputs[0])))
		}
		return losses
	}
	decays := func(name string) trainer.Objective {
		return trainer.Objective{Name: name, Scope: "/" + name, Optimizer: optimizer.StochasticGradientDescent().WithLearningRate(0.1).Done()}
	}
	tr, _ := newTrainer(t, trainer.Config{MaxSteps: 3, BatchSize: 12}, trainer.Adversarial(alike, decays("a"), decays("b")))
	if err := tr.Fit(t.Context(), ranktest.Blobs(145), nil); err != nil {
		t.Fatal(err)
	}
	want := 4.0
	for step := 1.0; step <= 3; step++ {
		want -= 2 * want * 0.1 / math.Sqrt(step)
	}
	for _, path := range []string{"/a/x", "/b/x"} {
		if got := float64(tensors.ToScalar[float32](tr.Store().GetVariable(path).MustValue())); math.Abs(got-want) > 1e-5 {
			t.Errorf("%s is %g, want %g", path, got, want)
		}
	}
}

// TestFrozen: variables that are not trainable, or have no gradient, stay unchanged, with every
// option that affects gradients.
func TestFrozen(t *testing.T) {
	net := func(scope *model.Scope, x *graph.Node) *graph.Node {
		frozen := scope.In("frozen").VariableWithValue("x", float32(2)).SetTrainable(false).NodeValue(x)
		stopped := graph.StopGradient(scope.In("stopped").VariableWithValue("x", float32(3)).NodeValue(x))
		return graph.Mul(plainNet(scope, x), graph.Mul(frozen, stopped))
	}
	c := trainer.Config{MaxEpochs: 2, BatchSize: 12, AccumulateGradBatches: 5, GradientClipNorm: 0.1, LogHistogramsEvery: 1}
	board, err := logger.NewTensorBoard(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	tr, _ := newTrainer(t, c, blobTask(net), trainer.WithLogger(board))
	if err := tr.Fit(t.Context(), ranktest.Blobs(145), nil); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]float32{"/frozen/x": 2, "/stopped/x": 3} {
		if got := tensors.ToScalar[float32](tr.Store().GetVariable(path).MustValue()); got != want {
			t.Errorf("%s is %g, want %g", path, got, want)
		}
	}
}

// TestLossWithRegularization: the loss includes what layers add to it, the loss of an objective
// doesn't.
func TestLossWithRegularization(t *testing.T) {
	step := func(scope *model.Scope, inputs, _ []*graph.Node) []*graph.Node {
		x := scope.In("a").VariableWithValue("x", float32(3)).NodeValue(inputs[0])
		train.AddRegularizationLoss(graph.Square(x))
		return []*graph.Node{x}
	}
	for name, want := range map[string]trainer.Metrics{"": {"test/loss": 12}, "a": {"test/loss": 12, "test/a_loss": 3}} {
		tr, _ := newTrainer(t, trainer.Config{}, trainer.Adversarial(step, objective(name, "/a")))
		got, err := tr.Test(t.Context(), ranktest.Blobs(20))
		if err != nil || !maps.Equal(got, want) {
			t.Errorf("objective %q: %v, %v, want %v", name, got, err, want)
		}
		var metrics trainer.Metrics
		record := trainer.Callback{Name: "record", FitEnd: func(e *trainer.Event) error { metrics = maps.Clone(e.Metrics); return nil }}
		tr, _ = newTrainer(t, trainer.Config{MaxSteps: 1, BatchSize: 12}, trainer.Adversarial(step, objective(name, "/a")), trainer.WithCallbacks(record))
		if err := tr.Fit(t.Context(), ranktest.Blobs(145), nil); err != nil || metrics["train/loss"] != 12 {
			t.Errorf("objective %q: the loss of the training is %v, %v, want 12", name, metrics, err)
		}
	}
}
