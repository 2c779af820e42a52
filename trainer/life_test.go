package trainer_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"gonbatch/checkpoint"
	"gonbatch/trainer"
)

// TestRandomSequences tries random lives of a training run: stopped, killed, ended by a callback,
// with limits raised and lowered, on different numbers of ranks, with different strategies and
// precisions.
// After each start the newest checkpoint has all weights, and is no older than before. At the end
// the training is where the limits say, with the weights of an undisturbed one: bit for bit, if it
// always ran on one rank.
func TestRandomSequences(t *testing.T) {
	if os.Getenv(ordersFolder) != "" {
		obey[order](t)
		return
	}
	n := seeds(t, 50)
	for first := 0; first < n; first += chunk {
		t.Run(fmt.Sprint("seeds from ", first), func(t *testing.T) {
			w := newWorlds[order](t)
			for seed := first; seed < min(n, first+chunk); seed++ {
				newLife(t, w, uint64(seed)).run(t)
			}
		})
	}
}

// life is a simple model of a training run: it knows how far the training must be.
type life struct {
	worlds *worlds[order]
	rng    *rand.Rand
	seed   uint64
	order  order // Of the next start.
	always bool  // On one rank.
	at     int64 // The newest checkpoint's update.
	before int64 // The previous start's.
	ended  bool  // By a callback.
	told   []string
}

func newLife(t *testing.T, w *worlds[order], seed uint64) *life {
	rng := rand.New(rand.NewPCG(seed, 1))
	pick := func(all ...int) int { return all[rng.IntN(len(all))] }
	l := &life{worlds: w, rng: rng, seed: seed, always: true}
	l.order = order{Ranks: 1, Examples: 145, Config: trainer.Config{
		MaxEpochs: 1 + rng.IntN(3), BatchSize: pick(12, 24, 36), AccumulateGradBatches: pick(1, 1, 2, 5), EvalBatchSize: 1 + rng.IntN(30), Seed: seed,
		ValCheckInterval: pick(0, 0, 3, 5), LimitValBatches: pick(0, 0, 1), Loggers: []string{"none"},
		Checkpoint: trainer.CheckpointConfig{Dir: t.TempDir(), EverySteps: pick(0, 0, 3, 7), Keep: pick(1, 2)},
	}}
	if rng.IntN(3) > 0 {
		l.order.Validation = 1 + rng.IntN(60)
		if rng.IntN(3) == 0 {
			l.order.Config.EarlyStopping = trainer.EarlyStoppingConfig{Monitor: "val/loss", Mode: "max", Patience: 1 + rng.IntN(3)}
		}
	}
	if l.order.Validation > 0 && rng.IntN(3) == 0 { // The loss falls, so the rate does.
		l.order.Config.Schedule = trainer.ScheduleConfig{Kind: "plateau", Mode: "max", Gamma: 0.5, Patience: 1 + rng.IntN(2), Cooldown: rng.IntN(2)}
	}
	if rng.IntN(3) == 0 {
		l.order.Config.EMADecay = 0.9
	}
	if rng.IntN(2) == 0 {
		l.order.Momentum = 0.5
	}
	l.order.Config.Precision = []string{"32-true", "32-true", "bf16-mixed", "16-mixed"}[rng.IntN(4)]
	if l.order.Config.ValCheckInterval == 0 {
		l.order.Config.CheckValEveryNEpoch = pick(0, 0, 2, 3)
	}
	l.order.Config.Checkpoint.EveryEpochs = pick(0, 0, 1, 2)
	return l
}

func (l *life) run(t *testing.T) {
	for range 1 + l.rng.IntN(3) {
		l.change()
		l.disturb()
		l.start(t)
	}
	l.change()
	last := l.start(t)[0]
	l.compare(t, last)
	if t.Failed() {
		t.Fatalf("seed %d: %s", l.seed, strings.Join(l.told, "; "))
	}
	t.Logf("seed %d: %s: step %d", l.seed, strings.Join(l.told, "; "), last.Step)
}

// change may change the limits, the number of ranks and the strategy.
func (l *life) change() {
	l.order.Kill, l.order.Stop, l.order.Again, l.order.End = 0, 0, false, 0
	c := &l.order.Config
	switch l.rng.IntN(5) {
	case 0:
		c.MaxEpochs, c.MaxSteps = 1+l.rng.IntN(4), 0
	case 1:
		c.MaxEpochs, c.MaxSteps = 0, 1+l.rng.IntN(40)
	}
	c.Strategy = []string{"auto", "zero1"}[l.rng.IntN(2)]
	if l.rng.IntN(5) == 0 {
		l.order.Ranks = 1 + l.rng.IntN(3)
		l.always = l.always && l.order.Ranks == 1
	}
}

// disturb may make the next start end early.
func (l *life) disturb() {
	k := l.at + 1 + int64(l.rng.IntN(15))
	switch l.rng.IntN(8) {
	case 0, 1, 2:
		l.order.Kill = k
	case 3, 4, 5:
		l.order.Stop, l.order.Again = k, l.rng.IntN(3) == 0
		if l.rng.IntN(3) == 0 {
			l.order.Stop = -1
		}
	case 6:
		l.order.End = k
	}
}

// start starts the training, and checks what it leaves.
func (l *life) start(t *testing.T) []outcome {
	t.Helper()
	o := l.order
	l.told = append(l.told, fmt.Sprintf("%d ranks, %s, %s, epochs %d, steps %d, kill %d, stop %d, again %v, end %d", o.Ranks, o.Config.Strategy, o.Config.Precision, o.Config.MaxEpochs, o.Config.MaxSteps, o.Kill, o.Stop, o.Again, o.End))
	all := l.worlds.do(t, overTCP(o.Ranks), o)
	for rank, result := range slices.Backward(all) {
		if result.Error != "" || result.Step != all[0].Step {
			t.Fatalf("seed %d: %s: rank %d: step %d, rank 0 has %d: %s", l.seed, strings.Join(l.told, "; "), rank, result.Step, all[0].Step, result.Error)
		}
	}
	step := l.newest(t, o.Kill > 0 && all[0].Step == o.Kill)
	if killed := o.Kill > 0 && all[0].Step == o.Kill; step < l.at || !killed && step != all[0].Step {
		t.Errorf("seed %d: the newest checkpoint is of step %d, before it was %d, and the training has come to %d", l.seed, step, l.at, all[0].Step)
	}
	l.before, l.at = l.at, step
	l.ended = l.ended || o.End > 0 && all[0].Step == o.End
	return all
}

// newest returns the step of the newest checkpoint, which has all weights. A training run that is
// killed early may have none.
func (l *life) newest(t *testing.T, killed bool) int64 {
	t.Helper()
	dir := l.order.Config.Checkpoint.Dir
	all, err := checkpoint.List(dir)
	if err != nil || len(all) == 0 && !killed {
		t.Fatalf("seed %d: %d checkpoints, %v", l.seed, len(all), err)
	}
	if len(all) == 0 {
		return 0
	}
	s, err := checkpoint.Read(all[0].Path)
	if err != nil || len(s.Weights) != 2 {
		t.Fatalf("seed %d: %s: %d weights, want 2: %v", l.seed, all[0].Path, len(s.Weights), err)
	}
	return s.Step
}

// limit returns the number of updates at which the limits end the training.
func (l *life) limit() int64 {
	c := l.order.Config
	if c.MaxSteps > 0 {
		return int64(c.MaxSteps)
	}
	batches := l.order.Examples / c.BatchSize
	return int64(c.MaxEpochs * ((batches + c.AccumulateGradBatches - 1) / c.AccumulateGradBatches))
}

// compare compares the end with an undisturbed training.
func (l *life) compare(t *testing.T, got outcome) {
	t.Helper()
	undisturbed := l.order
	undisturbed.Ranks = 1
	undisturbed.Config.Checkpoint = trainer.CheckpointConfig{Off: true}
	if early := l.order.Config.EarlyStopping.Monitor != ""; !early && !l.ended {
		if want := max(l.limit(), l.before); got.Step != want {
			t.Errorf("seed %d: ends at step %d, want %d", l.seed, got.Step, want)
		}
	}
	undisturbed.Config.MaxEpochs, undisturbed.Config.MaxSteps = 0, int(got.Step)
	want := l.worlds.do(t, overTCP(1), undisturbed)[0]
	if want.Error != "" || want.Step != got.Step {
		t.Fatalf("seed %d: undisturbed it ends at step %d, not %d: %s", l.seed, want.Step, got.Step, want.Error)
	}
	if len(got.Weights) != len(want.Weights) {
		t.Fatalf("seed %d: %d weights, want %d", l.seed, len(got.Weights), len(want.Weights))
	}
	d, limit := distance(got.Weights, want.Weights), map[string]float64{"32-true": 1e-4, "bf16-mixed": 0.02, "16-mixed": 0.003}[l.order.Config.Precision]
	if !(d < limit) || l.always && d != 0 {
		t.Errorf("seed %d: the weights differ by %g", l.seed, d)
	}
}
