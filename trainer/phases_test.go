package trainer_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/gomlx/gomlx/ml/train/metric"

	"gonbatch/data"
	"gonbatch/distributed/ranktest"
	"gonbatch/trainer"
)

// phase is a random phase of a training, such as fine-tuning.
type phase struct {
	config  trainer.Config
	begins  []string // Scopes that begin with the weights of the phase before; nil in the first.
	byPath  bool     // From its newest checkpoint, instead of from its trainer.
	frozen  []string
	slow    string // The scope with another rate; "" for none.
	sgd     bool
	kill    int64
	ends    string // What is loaded at the end: the best weights, their averages, or nothing.
	another bool   // There is a second validation set.
}

var phaseScopes = []string{"/first", "/norm", "/logits"}

func drawPhase(rng *rand.Rand, number int) phase {
	some := func() (all []string) {
		for _, scope := range phaseScopes {
			if rng.IntN(2) == 0 {
				all = append(all, scope)
			}
		}
		return all
	}
	p := phase{byPath: rng.IntN(2) == 0, sgd: rng.IntN(2) == 0, another: rng.IntN(2) == 0, kill: 1 + rng.Int64N(11)}
	if number > 0 {
		if p.begins = some(); len(p.begins) == 0 {
			p.begins = phaseScopes
		}
		if p.frozen = some(); len(p.frozen) == len(phaseScopes) {
			p.frozen = p.frozen[1:]
		}
		if p.slow = append(phaseScopes, "", "")[rng.IntN(5)]; slices.Contains(p.frozen, p.slow) {
			p.slow = "" // Fit refuses a rate for what is frozen.
		}
	}
	p.config = trainer.Config{
		Name: fmt.Sprint("phase-", number), MaxEpochs: 3, BatchSize: 12, Seed: rng.Uint64N(9), Loggers: []string{"none"},
		DropLast: new(rng.IntN(2) == 0), ValCheckInterval: rng.IntN(4), EMADecay: []float64{0, 0.8}[rng.IntN(2)], LogEvery: 1 + rng.IntN(4),
		Loader:     trainer.LoaderConfig{Workers: rng.IntN(4)},
		Checkpoint: trainer.CheckpointConfig{EverySteps: rng.IntN(4), Keep: 1 + rng.IntN(2)},
	}
	if p.another && rng.IntN(2) == 0 {
		p.config.Checkpoint.Monitor = "val_other/accuracy"
	}
	if p.ends = []string{"", "best", "average"}[rng.IntN(3)]; p.ends == "average" && p.config.EMADecay == 0 {
		p.ends = "best"
	}
	return p
}

var otherSet = data.Range(ranktest.Blobs(90), 60, 85)

// start returns the phase's trainer, with checkpoints in dir.
func (p phase) start(t *testing.T, dir string, before *trainer.Trainer, more ...trainer.Option) *trainer.Trainer {
	t.Helper()
	p.config.Checkpoint.Dir = dir
	task := blobTask(smallNet)
	if p.sgd {
		accuracy := metric.NewSparseCategoricalAccuracy("Mean Accuracy", "#acc")
		task = trainer.Supervised(smallNet, loss.SparseCategoricalCrossEntropyLogits, trainer.SGD{LearningRate: 0.05, Momentum: 0.9, WeightDecay: 0.01}, accuracy)
	}
	if p.begins != nil && p.byPath {
		more = append(more, trainer.InitFrom(before.Config().Checkpoint.Dir, p.begins...))
	} else if p.begins != nil {
		more = append(more, trainer.InitFromTrainer(before, p.begins...))
	}
	if len(p.frozen) > 0 {
		more = append(more, trainer.Freeze(p.frozen...))
	}
	if p.slow != "" {
		more = append(more, trainer.ScaleRate(p.slow, 0.1))
	}
	if p.another {
		more = append(more, trainer.WithValidation("other", otherSet))
	}
	tr, _ := anotherTrainer(t, p.config, task, more...)
	return tr
}

// TestRandomPhases: in any combination of initial, frozen and slow weights, averages, validation
// sets and best weights, over three phases, a phase that is killed resumes exactly, what is frozen
// stays as it was, and the best weights have the best validation.
func TestRandomPhases(t *testing.T) { everywhere(t, testRandomPhases) }

func testRandomPhases(t *testing.T) {
	seeds := []uint64{0, 1}
	if ranktest.InRank() {
		seeds = []uint64{2}
	}
	for _, seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 9))
		var before *trainer.Trainer
		trainer.NewProcess()
		for number := range 3 {
			p := drawPhase(rng, number)
			before = runPhase(t, p, before, fmt.Sprintf("seed %d, %+v", seed, p))
			if t.Failed() {
				return
			}
		}
	}
}

// runPhase runs a phase twice, once killed, and returns the trainer that was not.
func runPhase(t *testing.T, p phase, before *trainer.Trainer, what string) *trainer.Trainer {
	t.Helper()
	training := ranktest.Blobs(53)
	dir := t.TempDir()
	killed := p.start(t, dir, before, killAt(p.kill))
	if err := killed.Fit(t.Context(), training, ranktest.Blobs(20)); !errors.Is(err, errKilled) {
		t.Fatalf("%s: killed: %v", what, err)
	}
	resumed := p.start(t, dir, before)
	if err := resumed.Fit(t.Context(), training, ranktest.Blobs(20)); err != nil {
		t.Fatalf("%s: resumed: %v", what, err)
	}
	best := math.Inf(1)
	record := trainer.Callback{Name: "record", ValidationEnd: func(e *trainer.Event) error {
		value := e.Metrics["val/loss"]
		if p.config.Checkpoint.Monitor != "" {
			value = -e.Metrics[p.config.Checkpoint.Monitor]
		}
		best = min(best, value)
		return nil
	}}
	whole := p.start(t, t.TempDir(), before, trainer.WithCallbacks(record))
	if err := whole.Fit(t.Context(), training, ranktest.Blobs(20)); err != nil {
		t.Fatalf("%s: %v", what, err)
	}

	compareWeights(t, weights(t, resumed.Store()), weights(t, whole.Store()))
	for _, scope := range p.frozen {
		if slices.Contains(p.begins, scope) && !p.byPath && !slices.Equal(trainedFloats(t, whole, scope), trainedFloats(t, before, scope)) {
			t.Errorf("%s: %s was frozen, and has changed", what, scope)
		}
	}
	p.load(t, whole, best, what)
	return whole
}

// load loads what the phase ends with.
func (p phase) load(t *testing.T, tr *trainer.Trainer, best float64, what string) {
	t.Helper()
	var err error
	switch p.ends {
	case "best":
		err = tr.LoadBest()
	case "average":
		err = tr.LoadAverage()
	}
	if err != nil {
		t.Fatalf("%s: load: %v", what, err)
	}
	if p.ends != "best" {
		return
	}
	set, name, sign := data.Dataset(ranktest.Blobs(20)), "val/loss", 1.0
	if p.config.Checkpoint.Monitor != "" {
		set, name, sign = otherSet, "val/accuracy", -1
	}
	got, err := tr.Validate(t.Context(), set)
	if err != nil || math.Abs(sign*got[name]-best) > 1e-6 {
		t.Errorf("%s: the best weights have %s %g, want %g, %v", what, name, got[name], best, err)
	}
}
