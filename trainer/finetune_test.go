package trainer_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers/regularizer"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"gonbatch/checkpoint"
	"gonbatch/distributed/ranktest"
	"gonbatch/trainer"
)

func netTask(opt optimizer.Interface) trainer.Task {
	return trainer.Supervised(plainNet, loss.SparseCategoricalCrossEntropyLogits, opt)
}

// TestFineTuning: a training run begins with the body of another one, given by any kind of path,
// and leaves a frozen body unchanged; the rest is trained from its own initial weights.
func TestFineTuning(t *testing.T) { everywhere(t, testFineTuning) }

func testFineTuning(t *testing.T) {
	c := inFolder(t.TempDir())
	first, _ := newTrainer(t, c, blobTask(plainNet))
	mustFit(t, first)
	if err := first.WaitForCheckpoints(); err != nil {
		t.Fatal(err)
	}
	body, head := trainedFloats(t, first, "/hidden"), trainedFloats(t, first, "/logits")
	c.Checkpoint, c.Seed, c.LimitTrainBatches = trainer.CheckpointConfig{Off: true}, 2, 2
	dir := first.Config().Checkpoint.Dir
	still := func(init trainer.Option) []float64 {
		tr, _ := newTrainer(t, c, netTask(trainer.SGD{LearningRate: 1e-30}), init)
		mustFit(t, tr)
		if !slices.Equal(trainedFloats(t, tr, "/hidden"), body) {
			t.Error("the training does not begin with the body of the other")
		}
		return trainedFloats(t, tr, "/logits")
	}
	own := still(trainer.InitFrom(dir, "/hidden"))
	if slices.Equal(own, head) {
		t.Error("the training begins with the head of the other")
	}
	store := model.NewStore()
	store.SetParam("/"+regularizer.ParamL1, 0.02) // It changes weights after an update.
	tuned, _ := newTrainer(t, c, netTask(trainer.SGD{LearningRate: 0.1, Momentum: 0.9, WeightDecay: 0.1}), trainer.WithStore(store), trainer.InitFrom(dir, "/hidden"), trainer.Freeze("/hidden"))
	mustFit(t, tuned)
	if !slices.Equal(trainedFloats(t, tuned, "/hidden"), body) {
		t.Error("what is frozen has changed")
	}
	if slices.Equal(trainedFloats(t, tuned, "/logits"), own) {
		t.Error("the head was not trained")
	}
	if world(t).Size() > 1 {
		return
	}
	step := filepath.Join(dir, "step-00000012")
	for name, init := range map[string]trainer.Option{
		"step": trainer.InitFrom(step, "/hidden"), "file": trainer.InitFrom(filepath.Join(step, checkpoint.WeightsFile), "/hidden"),
		"trainer": trainer.InitFromTrainer(first, "/hidden"),
	} {
		if got := still(init); !slices.Equal(got, own) {
			t.Errorf("%s: the head is another one", name)
		}
	}
}

// TestFineTuningResumes: when a killed training run resumes, it has its own weights, not the
// initial ones.
func TestFineTuningResumes(t *testing.T) {
	base := inFolder(t.TempDir())
	first, _ := newTrainer(t, base, blobTask(plainNet))
	mustFit(t, first)
	options := func(more ...trainer.Option) []trainer.Option {
		return append(more, trainer.InitFrom(base.Checkpoint.Dir), trainer.Freeze("/hidden"), trainer.ScaleRate("/logits", 0.5))
	}
	c := inFolder(t.TempDir())
	c.MaxEpochs, c.Checkpoint.EverySteps = 3, 5
	task := func() trainer.Task { return netTask(optimizer.Adam().LearningRate(0.01).Done()) }
	tr, _ := newTrainer(t, c, task(), options(killAt(17))...)
	if err := tr.Fit(t.Context(), ranktest.Blobs(145), nil); !errors.Is(err, errKilled) {
		t.Fatal(err)
	}
	resumed, _ := newTrainer(t, c, task(), options()...)
	mustFit(t, resumed)
	if want := []string{"/hidden/dense/biases", "/hidden/dense/weights", "/logits/dense/biases", "/logits/dense/weights"}; !slices.Equal(namesInNewest(t, c.Checkpoint.Dir), want) {
		t.Errorf("the checkpoint has the weights %q, want %q", namesInNewest(t, c.Checkpoint.Dir), want)
	}
	c.Checkpoint = trainer.CheckpointConfig{Off: true}
	whole, _ := newTrainer(t, c, task(), options()...)
	mustFit(t, whole)
	compareWeights(t, weights(t, resumed.Store()), weights(t, whole.Store()))
}

// TestSecondPhase: the second phase begins with the weights of the first, and has its own
// optimizer.
func TestSecondPhase(t *testing.T) {
	c := trainer.Config{BatchSize: 12, MaxSteps: 5, OverfitBatches: 1}
	first, _ := newTrainer(t, c, pulled(trainer.SGD{LearningRate: 0.1, Momentum: 0.9}))
	if err := first.Fit(t.Context(), ranktest.Blobs(12), nil); err != nil {
		t.Fatal(err)
	}
	began, target := trainedFloats(t, first, "/pull"), meanOf(t, ranktest.Blobs(12), 0)
	for _, phase := range []struct {
		name   string
		option trainer.Option
	}{
		{"weights", trainer.InitFromTrainer(first)},
		{"store", trainer.WithStore(first.Store())}, // Last: it changes the first one's weights.
	} {
		c.MaxSteps = 1
		second, _ := anotherTrainer(t, c, pulled(trainer.SGD{LearningRate: 0.25}), phase.option)
		if err := second.Fit(t.Context(), ranktest.Blobs(12), nil); err != nil {
			t.Fatal(err)
		}
		want := make([]float64, len(began))
		for i, w := range began {
			want[i] = w - 0.25*(w-target[i])
		}
		if d := distance(want, trainedFloats(t, second, "/pull")); !(d < 1e-5) {
			t.Errorf("%s: after one update the weights are %g from those of the new rate", phase.name, d)
		}
	}
}

// TestScaleRate: halving the rate for one part equals halving the whole rate and doubling it for
// the other part.
func TestScaleRate(t *testing.T) { everywhere(t, testScaleRate) }

func testScaleRate(t *testing.T) {
	sgd := func(rate float64) optimizer.Interface {
		return trainer.SGD{LearningRate: rate, Momentum: 0.9, WeightDecay: 0.01}
	}
	for _, opt := range []func(rate float64) optimizer.Interface{sgd, adam} {
		after := func(rate float64, options ...trainer.Option) []float64 {
			c := trainer.Config{BatchSize: 12, Seed: 1, MaxSteps: 10}
			tr, _ := newTrainer(t, c, netTask(opt(rate)), options...)
			mustFit(t, tr)
			return trainedFloats(t, tr, "/")
		}
		want := after(0.02, trainer.ScaleRate("/logits", 0.5))
		if d := distance(want, after(0.01, trainer.ScaleRate("/", 2), trainer.ScaleRate("/logits", 1))); !(d < 1e-4) {
			t.Errorf("%T: the weights are %g apart", opt(1), d)
		}
		if d := distance(want, after(0.02)); d < 1e-3 {
			t.Errorf("%T: the factor changes nothing", opt(1))
		}
	}
}

func adam(rate float64) optimizer.Interface { return optimizer.Adam().LearningRate(rate).Done() }

// TestFineTuningRefuses: a scope that doesn't exist, and weights that don't fit.
func TestFineTuningRefuses(t *testing.T) {
	c := inFolder(t.TempDir())
	first, _ := newTrainer(t, c, blobTask(plainNet))
	mustFit(t, first)
	dir := c.Checkpoint.Dir
	other := filepath.Join(t.TempDir(), "other.safetensors")
	write, err := checkpoint.TensorFile(map[string]*tensors.Tensor{"/hidden/dense/weights": tensors.FromValue([]float32{1, 2})}, nil)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(other)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(write(f), f.Close()); err != nil {
		t.Fatal(err)
	}
	c.Checkpoint = trainer.CheckpointConfig{Off: true}
	for want, option := range map[string]trainer.Option{
		`there are no weights under "/bdy", only under ["/hidden" "/logits"]`: trainer.InitFrom(dir, "/bdy"),
		`the scope "hidden": it must be a path such as "/body"`:               trainer.InitFrom(dir, "hidden"),
		"is neither a checkpoint, nor a folder of checkpoints":                trainer.InitFrom(t.TempDir()),
		"no such file":                          trainer.InitFrom("nowhere.safetensors"),
		`Freeze: the scope "body/": it must be`: trainer.Freeze("body/"),
		`Freeze: the model has no trainable variable under "/bdy", only under ["/hidden" "/logits"]`: trainer.Freeze("/bdy"),
		`ScaleRate: the model has no variable that is trained under "/bdy"`:                          trainer.ScaleRate("/bdy", 0.1),
		`ScaleRate "/hidden": the factor must be more than 0 and finite, got 0`:                      trainer.ScaleRate("/hidden", 0),
		"/hidden/dense/weights":  trainer.InitFrom(other, "/hidden"),
		"there are no weights\n": trainer.InitFromTrainer(emptyTrainer(t)),
	} {
		trainer.NewProcess()
		tr, err := trainer.New(world(t), c, blobTask(plainNet), option)
		if err == nil {
			err = tr.Fit(t.Context(), ranktest.Blobs(145), nil)
		}
		if err == nil || !strings.Contains(err.Error()+"\n", want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	tr, _ := newTrainer(t, c, blobTask(renamedNet), trainer.InitFrom(dir))
	_, testErr := tr.Test(t.Context(), ranktest.Blobs(40))
	for _, err := range []error{testErr, tr.Fit(t.Context(), ranktest.Blobs(145), nil)} {
		if err == nil || !strings.Contains(err.Error(), "only in the checkpoint:\n    /hidden/dense/biases") {
			t.Errorf("another model: %v", err)
		}
	}
}

func emptyTrainer(t *testing.T) *trainer.Trainer {
	tr, _ := anotherTrainer(t, trainer.Config{}, blobTask(plainNet), trainer.WithStore(model.NewStore()))
	return tr
}
