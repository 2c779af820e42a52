package checkpoint_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/gobackend"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/model/initializer"
	"github.com/gomlx/gomlx/ml/train"
	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/gomlx/gomlx/ml/train/metric"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"gonbatch/checkpoint"
)

// training is a small training with every kind of state: a layer's buffer, dropout, Adam, and
// metrics.
type training struct {
	store   *model.Store
	trainer *train.Trainer
}

func newTraining(t *testing.T, hidden int) *training {
	t.Helper()
	store := model.NewStore()
	ok(t, store.SetRNGStateFromSeed(7))
	store.SetParam("/initializer_seed", int64(11))
	network := func(scope *model.Scope, _ any, inputs []*graph.Node) []*graph.Node {
		x := layers.Dense(scope.In("hidden"), inputs[0], true, hidden)
		x = center(scope.In("norm"), x)
		x = layers.DropoutStatic(scope.In("dropout"), x, 0.3)
		return []*graph.Node{layers.Dense(scope.In("output"), x, true, 1)}
	}
	moving := func(name string) metric.Interface {
		return metric.NewExponentialMovingAverageMetric("Moving "+name, "~"+name, metric.LossMetricType,
			func(_ *model.Scope, labels, predictions []*graph.Node) *graph.Node {
				return loss.MeanAbsoluteError(labels, predictions)
			}, nil, 0.1)
	}
	trainer := train.NewTrainer(backend(t), store, network, loss.MeanSquaredError, optimizer.Adam().LearningRate(0.01).Done(),
		[]metric.Interface{moving("a"), moving("a")}, nil)
	return &training{store, trainer}
}

// center subtracts from x its running mean, a buffer of the layer like those of a batch
// normalization.
func center(scope *model.Scope, x *graph.Node) *graph.Node {
	batch := graph.StopGradient(graph.ReduceMean(x, 0))
	mean := scope.WithInitializer(initializer.Zero).VariableWithShape("mean", batch.Shape()).SetTrainable(false)
	if scope.IsTraining(x.Graph()) {
		mean.SetNodeValue(graph.Add(graph.MulScalar(mean.NodeValue(x.Graph()), 0.9), graph.MulScalar(batch, 0.1)))
	}
	return graph.Sub(x, graph.ExpandLeftToRank(mean.NodeValue(x.Graph()), x.Rank()))
}

func backend(t *testing.T) compute.Backend {
	t.Helper()
	b, err := gobackend.New("")
	ok(t, err)
	t.Cleanup(b.Finalize)
	return b
}

// steps trains, and returns the losses and metrics of each step.
func (tr *training) steps(t *testing.T, from, to int) []string {
	t.Helper()
	var all []string
	for step := from; step < to; step++ {
		x := make([]float32, 8*3)
		y := make([]float32, 8)
		for i := range x {
			x[i] = float32((step*31+i*17)%23)/23 - 0.5
		}
		for i := range y {
			y[i] = x[i*3] - x[i*3+1]*x[i*3+2]
		}
		metrics, err := tr.trainer.TrainStep(train.Batch{Inputs: []*tensors.Tensor{tensors.FromFlatDataAndDimensions(x, 8, 3)},
			Labels: []*tensors.Tensor{tensors.FromFlatDataAndDimensions(y, 8, 1)}})
		ok(t, err)
		line := ""
		for _, m := range metrics {
			line += fmt.Sprint(m.Value(), " ")
		}
		all = append(all, line)
	}
	return all
}

// TestResumeIsExact checks that a training run that is saved and resumed in new objects, before or
// after its graph is built, equals an uninterrupted one bit for bit.
func TestResumeIsExact(t *testing.T) {
	whole := newTraining(t, 5)
	want := whole.steps(t, 0, 12)

	first := newTraining(t, 5)
	first.steps(t, 0, 5)
	s := take(t, first.store)
	if s.Step != 5 {
		t.Errorf("the snapshot is of step %d", s.Step)
	}
	dir := open(t, checkpoint.Options{})
	ok(t, dir.Save(s))
	first.steps(t, 5, 7) // The snapshot is a copy: this doesn't change it.

	tests := []struct {
		name   string
		before int // Steps in the new objects before the restore.
	}{
		{name: "before the graph is built"},
		{name: "after the graph is built", before: 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			read := latest(t, dir)
			resumed := newTraining(t, 5)
			resumed.steps(t, 0, tt.before)
			ok(t, read.Restore(resumed.store))
			got := resumed.steps(t, 5, 12)
			same(t, want[5:], got)
			ok(t, read.Check(resumed.store))
			sameTensors(t, take(t, whole.store), take(t, resumed.store))
		})
	}
}

func TestWeights(t *testing.T) {
	tr := newTraining(t, 5)
	tr.steps(t, 0, 1)
	s := take(t, tr.store)
	var weights, rest []string
	for _, path := range sorted(s.Tensors) {
		if s.Weights[path] {
			weights = append(weights, path)
		} else {
			rest = append(rest, path)
		}
	}
	same(t, []string{
		"/hidden/dense/biases", "/hidden/dense/weights",
		"/norm/mean",
		"/output/dense/biases", "/output/dense/weights",
	}, weights)
	for _, path := range []string{"/#rngState", "/global_step", "/optimizers/learning_rate", "/AdamOptimizer/hidden/dense/weights_1st_moment",
		"/metrics/Moving a_uuid_0/mean", "/metrics/Moving a_uuid_1/mean"} {
		if s.Tensors[path] == nil || s.Weights[path] {
			t.Errorf("%s isn't among the rest:\n%q", path, rest)
		}
	}
}

// TestWeightsOfParts: a frozen copy of the model belongs to it. Variables that an optimizer keeps
// inside a part, or that an older version wrote among the weights, don't.
func TestWeightsOfParts(t *testing.T) {
	store := storeOf(t, "/dense/weights", "/teacher/dense/weights", "/ours/dense/weights_momentum", "/generator/optimizers/learning_rate", "/generator/AdamOptimizer/step")
	for v := range store.IterVariables() {
		v.SetTrainable(v.Path() == "/dense/weights")
	}
	s := take(t, store)
	want := []string{"/dense/weights", "/teacher/dense/weights"}
	same(t, want, sorted(s.Weights))
	s.Weights["/generator/optimizers/learning_rate"] = true
	path := t.TempDir()
	ok(t, openAt(t, path, checkpoint.Options{}).Save(s))
	read := latest(t, openAt(t, path, checkpoint.Options{}))
	same(t, want, sorted(read.Weights))
	newer := take(t, store)
	newer.Step = 1
	ok(t, openAt(t, path, checkpoint.Options{}).Save(newer)) // It has everything that the older one has, in other places.
}

// TestGive passes the tensors of one store on to another, which has a variable already. Nothing is
// copied.
func TestGive(t *testing.T) {
	first := storeOf(t, "/dense/weights", "/dense/biases", "/"+model.RNGStateVariableName)
	want := take(t, first)
	s, err := checkpoint.View(first, nil)
	ok(t, err)
	store := model.NewStore()
	_, err = store.CreateVariable("/dense/biases", tensors.FromShape(want.Tensors["/dense/biases"].Shape()))
	ok(t, err, s.Give(store))
	sameTensors(t, want, take(t, store))
	again, err := checkpoint.View(store, nil)
	ok(t, err)
	for _, path := range sorted(want.Tensors) {
		value, err := store.GetVariable(path).Value()
		ok(t, err)
		if s.Tensors[path] != value || again.Tensors[path] != value {
			t.Errorf("%s was copied", path)
		}
	}
	sameTensors(t, want, take(t, store))
}

// TestGivenWeights: other snapshots can be restored again and again into a store that was given
// tensors, whether a graph has created its variables or not.
func TestGivenWeights(t *testing.T) {
	best := take(t, storeOf(t, "/dense/biases", "/dense/weights"))
	for _, created := range []bool{false, true} {
		store := model.NewStore()
		ok(t, take(t, storeOf(t, "/dense/weights", "/dense/biases")).Give(store))
		for range 3 {
			if created && store.GetVariable("/dense/weights") == nil {
				t.Fatal("no weights")
			}
			ok(t, best.RestoreWeights(store, func(path string) bool { return path == "/dense/weights" }))
			sameTensors(t, take(t, storeOf(t, "/dense/biases", "/dense/weights")), best)
		}
		if v := store.GetVariable("/dense/weights"); !v.MustValue().Equal(best.Tensors["/dense/weights"]) || v.MustValue() == best.Tensors["/dense/weights"] {
			t.Errorf("created %v: the weights are %v", created, v.MustValue())
		}
		if v := store.GetVariable("/dense/biases"); v.MustValue().Equal(best.Tensors["/dense/biases"]) {
			t.Errorf("created %v: the biases are %v", created, v.MustValue())
		}
	}
}

// TestRestoreWeights: only the wanted weights are set, immediately and when graphs create them, on
// top of values left by an earlier call.
func TestRestoreWeights(t *testing.T) {
	tr := newTraining(t, 5)
	tr.steps(t, 0, 3)
	s := take(t, tr.store)
	in := func(scope string) func(string) bool {
		return func(path string) bool { return strings.HasPrefix(path, scope) }
	}
	other := newTraining(t, 5)
	other.steps(t, 0, 1)
	before := take(t, other.store)
	ok(t, s.RestoreWeights(other.store, in("/hidden/")))
	for path, value := range take(t, other.store).Tensors {
		want := before.Tensors[path]
		if in("/hidden/")(path) {
			want = s.Tensors[path]
		}
		if !value.Equal(want) {
			t.Errorf("%s is wrong", path)
		}
	}
	store := model.NewStore()
	ok(t, s.RestoreWeights(store, in("/hidden/")))
	ok(t, s.RestoreWeights(store, in("/norm/")))
	same(t, []string{"/hidden/dense/biases", "/hidden/dense/weights", "/norm/mean"}, sorted(take(t, store).Weights))
	if v := store.GetVariable("/hidden/dense/weights"); v == nil || !v.MustValue().Equal(s.Tensors["/hidden/dense/weights"]) {
		t.Error("a graph would not get the weights")
	}
	wide := newTraining(t, 6)
	wide.steps(t, 0, 1)
	contains(t, s.RestoreWeights(wide.store, in("/hidden/")), "/hidden/dense/weights is (Float32)[3, 5] there, (Float32)[3, 6] here")
}

func TestAnotherModel(t *testing.T) {
	tr := newTraining(t, 5)
	tr.steps(t, 0, 1)
	s := take(t, tr.store)
	other := newTraining(t, 6)
	other.steps(t, 0, 1)
	before := take(t, other.store)
	err := s.Restore(other.store)
	mismatch := as[*checkpoint.MismatchError](t, err)
	contains(t, err, "a different model", "/hidden/dense/weights is (Float32)[3, 5] there, (Float32)[3, 6] here", "and 5 more")
	if len(mismatch.Different) != 10 || mismatch.Missing != nil || mismatch.Unused != nil {
		t.Errorf("%+v", mismatch)
	}
	sameTensors(t, before, take(t, other.store))

	store := model.NewStore()
	store.VariableWithValue("/hidden/dense/weights", [][]float32{{1, 2, 3, 4, 5}, {1, 2, 3, 4, 5}, {1, 2, 3, 4, 5}})
	store.VariableWithValue("/new", 1.5)
	err = s.Restore(store)
	contains(t, err, "only in the model:\n    /new")
	err = s.Check(model.NewStore())
	if mismatch := as[*checkpoint.MismatchError](t, err); len(mismatch.Unused) != len(s.Tensors)-metrics(s) {
		t.Errorf("unused: %q", mismatch.Unused)
	}
}
