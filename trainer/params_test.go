package trainer_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train"
	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"gonbatch/distributed/ranktest"
	"gonbatch/internal/rundir"
	"gonbatch/trainer"
)

// loggedParams trains in a run directory, and returns what it contains about the hyper-parameters.
func loggedParams(t *testing.T, dir string, c trainer.Config, opt optimizer.Interface, options ...trainer.Option) rundir.Params {
	t.Helper()
	t.Setenv("GONBATCH_RUN_DIR", dir)
	tr, _ := newTrainer(t, c, trainer.Supervised(smallNet, loss.SparseCategoricalCrossEntropyLogits, opt), options...)
	if err := tr.LogParams(map[string]any{"width": 16}); err != nil {
		t.Fatal(err)
	}
	if err := tr.Fit(t.Context(), ranktest.Blobs(48), nil); err != nil {
		t.Fatal(err)
	}
	if err := tr.Logger().Close(); err != nil {
		t.Fatal(err)
	}
	all, err := rundir.ReadParams(rundir.At(dir))
	if err != nil || len(all) != 1 {
		t.Fatalf("hyper-parameters %+v, %v", all, err)
	}
	return all[0]
}

// own is an optimizer of the user's, with a rate that only the store knows.
type own struct {
	optimizer.Interface
	Alpha  float32
	Steps  uint8
	hidden bool
	self   *own
}

func (o *own) UpdateGraphWithGradients(scope *model.Scope, grads []*graph.Node, dtype dtypes.DType) {
	o.Interface.(train.OptimizeWithGradients).UpdateGraphWithGradients(scope, grads, dtype)
}

// TestParams: the run directory has the hyper-parameters of a training that are set in its code:
// first the program's own, then those that it has chosen, then defaults.
func TestParams(t *testing.T) {
	looped := &own{Interface: optimizer.Adam().Done(), Alpha: 0.1, Steps: 7, hidden: true}
	looped.self = looped
	half := trainer.ScheduleFunc(func(int, int) float64 { return 0.5 })
	tests := []struct {
		name      string
		config    trainer.Config
		optimizer optimizer.Interface
		options   []trainer.Option
		want      map[string]string
	}{
		{"Adam", trainer.Config{BatchSize: 12, Seed: 3, GradientClipNorm: 1.5}, optimizer.Adam().LearningRate(0.1 + 0.2).WeightDecay(0.01).Done(), nil, map[string]string{
			"batch_size": "12", "seed": "3", "gradient_clip_norm": "1.5", "max_epochs": "1", "precision": "32-true", "ema_decay": "0",
			"optimizer": "optimizer.adam", "learning_rate": "0.3", "optimizer.weight_decay": "0.01", "optimizer.beta2": "0.999", "optimizer.adamax": "false",
			"dataset": "blobs", "examples": "48", "world_size": "1", "schedule.kind": "constant",
		}},
		{"GoMLX's SGD", trainer.Config{BatchSize: 12}, optimizer.StochasticGradientDescent().Done(), nil, map[string]string{
			"optimizer": "optimizer.SGDConfig", "learning_rate": "0.1", "optimizer.use_decay": "true", "optimizer.initial_learning_rate": "",
		}},
		{"SGD", trainer.Config{BatchSize: 12, Precision: "64-true"}, trainer.SGD{LearningRate: 0.01, Momentum: 0.9, WeightDecay: 0.1, Nesterov: true}, []trainer.Option{
			trainer.WithSchedule(half), trainer.ScaleDecay("/logits", 0.5), trainer.ScaleDecay("/", 0), trainer.NoDecayOfBiasesAndNorms(), trainer.ScaleRate("/", 2), trainer.Freeze("/first"),
		}, map[string]string{
			"optimizer": "trainer.SGD", "learning_rate": "0.01", "optimizer.momentum": "0.9", "optimizer.nesterov": "true", "schedule": "trainer.ScheduleFunc", "schedule.kind": "",
			"scale_decay": "/ 0, /logits 0.5", "no_decay_of_biases_and_norms": "true", "scale_rate": "/ 2", "freeze": "/first",
		}},
		{"the user's", trainer.Config{BatchSize: 12}, looped, nil, map[string]string{
			"optimizer": "trainer_test.own", "learning_rate": "0.001", "optimizer.alpha": "0.1", "optimizer.steps": "7", "optimizer.hidden": "true",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.config.Name = "net/1"
			got := loggedParams(t, t.TempDir(), tt.config, tt.optimizer, tt.options...)
			values := map[string]string{}
			for _, p := range got.Params {
				values[p.Name] = p.Value
			}
			for name, want := range tt.want {
				if values[name] != want {
					t.Errorf("%s is %q, want %q", name, values[name], want)
				}
			}
			if got.Training != "net/1" || got.Params[0] != (rundir.Param{Name: "width", Value: "16"}) || got.Params[1].Name != "batch_size" || got.Params[len(got.Params)-1].Name == "seed" {
				t.Errorf("the order is %+v", got.Params)
			}
		})
	}
}

// TestParamsOfObjectives: each objective's optimizer has its own.
func TestParamsOfObjectives(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("GONBATCH_RUN_DIR", dir)
	step := func(scope *model.Scope, inputs, labels []*graph.Node) []*graph.Node {
		one, other := smallNet(scope.In("a"), inputs[0]), smallNet(scope.In("b"), inputs[0])
		return []*graph.Node{loss.SparseCategoricalCrossEntropyLogits(labels, []*graph.Node{one}), loss.SparseCategoricalCrossEntropyLogits(labels, []*graph.Node{other})}
	}
	tr, _ := newTrainer(t, trainer.Config{BatchSize: 12}, trainer.Adversarial(step,
		trainer.Objective{Name: "a", Scope: "/a", Optimizer: optimizer.Adam().LearningRate(0.5).Done()}, trainer.Objective{Name: "b", Scope: "/b", Optimizer: trainer.SGD{LearningRate: 0.25}}))
	if err := tr.Fit(t.Context(), ranktest.Blobs(48), nil); err != nil {
		t.Fatal(err)
	}
	if err := tr.Logger().Close(); err != nil {
		t.Fatal(err)
	}
	all, err := rundir.ReadParams(rundir.At(dir))
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprint(all)
	for _, want := range []rundir.Param{{Name: "a.learning_rate", Value: "0.5"}, {Name: "a.optimizer", Value: "optimizer.adam"}, {Name: "b.learning_rate", Value: "0.25"}} {
		if n := len(all[0].Params); n == 0 || !slices.Contains(all[0].Params, want) {
			t.Errorf("no %+v in %s", want, text)
		}
	}
}

// TestParamsOfLaterStart: a later start replaces values, and one whose training has ended changes
// none of the trainer's.
func TestParamsOfLaterStart(t *testing.T) {
	dir := t.TempDir()
	c := trainer.Config{Name: "net", BatchSize: 12, MaxEpochs: 1, GradientClipNorm: 2}
	adam := func(rate float64) optimizer.Interface { return optimizer.Adam().LearningRate(rate).Done() }
	first := loggedParams(t, dir, c, adam(0.01))
	c.MaxEpochs, c.GradientClipNorm = 2, 0
	second := loggedParams(t, dir, c, adam(0.02))
	for _, want := range []rundir.Param{{Name: "max_epochs", Value: "2"}, {Name: "gradient_clip_norm", Value: "0"}, {Name: "learning_rate", Value: "0.02"}} {
		if !slices.Contains(second.Params, want) || len(second.Params) != len(first.Params) {
			t.Errorf("no %+v in %+v", want, second)
		}
	}
	c.LogEvery = 7
	if third := loggedParams(t, dir, c, adam(0.02)); fmt.Sprint(third) != fmt.Sprint(second) {
		t.Errorf("after the end of the training: %+v, want %+v", third, second)
	}
}

// TestParamsOfOtherOptimizer: a training run that starts over with another optimizer and a schedule
// of its own has none of the hyper-parameters of those before.
func TestParamsOfOtherOptimizer(t *testing.T) {
	dir := t.TempDir()
	c := trainer.Config{Name: "net", BatchSize: 12, Checkpoint: trainer.CheckpointConfig{Resume: "never"}}
	half := trainer.WithSchedule(trainer.ScheduleFunc(func(int, int) float64 { return 0.5 }))
	loggedParams(t, dir, c, optimizer.Adam().WeightDecay(0.01).Done())
	sgd := trainer.SGD{LearningRate: 0.1, Momentum: 0.9}
	got := loggedParams(t, dir, c, sgd, half)
	want := loggedParams(t, t.TempDir(), c, sgd, half)
	byName := func(a, b rundir.Param) int { return strings.Compare(a.Name, b.Name) }
	slices.SortFunc(got.Params, byName)
	slices.SortFunc(want.Params, byName)
	if !slices.Equal(got.Params, want.Params) {
		t.Errorf("got %v, want %v", got.Params, want.Params)
	}
}
