package trainer_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train/loss"

	"gonbatch/distributed/ranktest"
	"gonbatch/trainer"
)

// plannedRun is a training run, in numbers of batches of 12 examples.
type plannedRun struct {
	epochs, batches, accumulate int
	maxSteps, valEvery, save    int // 0: none.
	validates                   bool
	stop                        int // Event.Stop after this many batches of a Fit; 0: never.
}

func randomRun(r *rand.Rand) plannedRun {
	sometimes := func(n int) int { return r.IntN(2) * (1 + r.IntN(n)) }
	return plannedRun{
		epochs: 1 + r.IntN(3), batches: 1 + r.IntN(5), accumulate: 1 + r.IntN(3), maxSteps: sometimes(8), valEvery: sometimes(3), save: sometimes(3),
		validates: r.IntN(3) > 0, stop: sometimes(12),
	}
}

func (p plannedRun) config(dir string) trainer.Config {
	return trainer.Config{
		MaxEpochs: p.epochs, LimitTrainBatches: p.batches, AccumulateGradBatches: p.accumulate, MaxSteps: p.maxSteps, ValCheckInterval: p.valEvery,
		BatchSize: 12, Seed: 4, Checkpoint: trainer.CheckpointConfig{Dir: dir, EverySteps: p.save},
	}
}

// place is where a training run is.
type place struct {
	epoch, batch, step int
	best               float64 // The lowest val/loss.
}

// call is a call of a callback.
type call struct {
	name string
	place
}

func (c call) String() string {
	return fmt.Sprintf("%s %d/%d/%d", c.name, c.epoch, c.batch, c.step)
}

// modelRun is a simple model of the loop.
type modelRun struct {
	plannedRun
	place
	losses  []float64 // Of the validations to come.
	calls   []call
	batches int // Of this Fit.
	due     bool
}

// callsFrom returns the calls of a Fit that begins at a place, with these losses of its
// validations.
func (p plannedRun) callsFrom(at place, losses []float64) []call {
	m := &modelRun{plannedRun: p, place: at, losses: losses}
	m.call("FitStart")
	for m.epoch < p.epochs && !m.ended() {
		if m.batch == 0 {
			m.call("EpochStart")
		}
		for m.batch < p.batches && (!m.ended() || !m.updated()) {
			m.train()
		}
		if m.batch < p.batches {
			break
		}
		m.endEpoch()
	}
	m.call("CheckpointSaved")
	m.call("FitEnd")
	return m.calls
}

func (m *modelRun) call(name string) { m.calls = append(m.calls, call{name, m.place}) }

func (m *modelRun) ended() bool {
	return m.maxSteps > 0 && m.step >= m.maxSteps || m.stop > 0 && m.batches >= m.stop
}

func (m *modelRun) updated() bool {
	return m.batch%m.accumulate == 0 || m.batch == m.plannedRun.batches
}

func (m *modelRun) train() {
	m.call("BatchStart")
	m.batch++
	m.batches++
	if m.updated() {
		m.step++
	}
	m.call("BatchEnd")
	if !m.updated() {
		return
	}
	if m.valEvery > 0 && m.step%m.valEvery == 0 {
		m.validate()
	}
	m.due = m.due || m.save > 0 && m.step%m.save == 0
	if m.due && m.batch < m.plannedRun.batches {
		m.saved()
	}
}

func (m *modelRun) endEpoch() {
	if m.valEvery == 0 {
		m.validate()
	}
	m.call("EpochEnd")
	m.epoch, m.batch = m.epoch+1, 0
	if m.due || m.save == 0 {
		m.saved()
	}
}

func (m *modelRun) validate() {
	if !m.validates {
		return
	}
	m.call("ValidationEnd")
	if len(m.losses) == 0 {
		return // The training has failed before.
	}
	if m.losses[0] < m.best {
		m.best, m.due = m.losses[0], true
	}
	m.losses = m.losses[1:]
}

func (m *modelRun) saved() {
	m.call("CheckpointSaved")
	m.due = false
}

// recorder notes the calls of a trainer, and fails at one of them.
type recorder struct {
	plannedRun
	calls   []call
	losses  []float64
	batches int
	failAt  int // The call that returns errSequence; -1: none.
	failed  error
}

var errSequence = errors.New("the callback fails")

func (r *recorder) note(name string) func(*trainer.Event) error {
	return func(e *trainer.Event) error {
		r.calls = append(r.calls, call{name, place{epoch: e.Epoch, batch: e.Batch, step: int(e.Step)}})
		switch name {
		case "ValidationEnd":
			r.losses = append(r.losses, e.Metrics["val/loss"])
		case "BatchEnd":
			if r.batches++; r.batches == r.stop {
				e.Stop("enough")
			}
		}
		if len(r.calls)-1 == r.failAt {
			return errSequence
		}
		return nil
	}
}

func (r *recorder) callback() trainer.Callback {
	return trainer.Callback{
		Name: "recorder", FitStart: r.note("FitStart"), EpochStart: r.note("EpochStart"), BatchStart: r.note("BatchStart"), BatchEnd: r.note("BatchEnd"),
		ValidationEnd: r.note("ValidationEnd"), EpochEnd: r.note("EpochEnd"), CheckpointSaved: r.note("CheckpointSaved"), FitEnd: r.note("FitEnd"),
		Failed: func(_ *trainer.Event, err error) { r.failed = errors.Join(r.failed, err) },
	}
}

// fit trains, and returns what the callbacks have seen.
func (p plannedRun) fit(t *testing.T, dir string, failAt int) *recorder {
	t.Helper()
	r := &recorder{plannedRun: p, failAt: failAt}
	tr, _ := newTrainer(t, p.config(dir), blobTask(plainNet), trainer.WithCallbacks(r.callback()))
	var err error
	if p.validates {
		err = tr.Fit(t.Context(), ranktest.Blobs(145), ranktest.Blobs(40))
	} else {
		err = tr.Fit(t.Context(), ranktest.Blobs(145), nil)
	}
	if failed := failAt >= 0 && failAt < len(r.calls); errors.Is(err, errSequence) != failed || errors.Is(r.failed, errSequence) != failed || !failed && (err != nil || r.failed != nil) {
		t.Fatalf("%+v, failing at call %d of %d: Fit returns %v, Failed gets %v", p, failAt, len(r.calls), err, r.failed)
	}
	if err := tr.WaitForCheckpoints(); err != nil {
		t.Fatal(err)
	}
	return r
}

// TestOrderOfCallbacks compares random training runs, that fail at a random callback and resume,
// with a simple model of the loop.
func TestOrderOfCallbacks(t *testing.T) { everywhere(t, testOrderOfCallbacks) }

func testOrderOfCallbacks(t *testing.T) {
	random, resumptions := rand.New(rand.NewPCG(7, 7)), 0
	for range 12 {
		p := randomRun(random)
		whole := p.fit(t, t.TempDir(), -1)
		compareCalls(t, p, whole.calls, p.callsFrom(place{best: math.Inf(1)}, whole.losses))
		dir, failAt := t.TempDir(), random.IntN(len(whole.calls))
		killed := p.fit(t, dir, failAt)
		model := p.callsFrom(place{best: math.Inf(1)}, killed.losses)[:failAt+1]
		compareCalls(t, p, killed.calls, model)
		from := place{best: math.Inf(1)}
		for _, c := range model {
			if c.name == "CheckpointSaved" {
				from = c.place
			}
		}
		if from.epoch == p.epochs || p.maxSteps > 0 && from.step >= p.maxSteps || p.stop > 0 {
			continue // It may have ended.
		}
		resumed := p.fit(t, dir, -1)
		compareCalls(t, p, resumed.calls, p.callsFrom(from, resumed.losses))
		resumptions++
	}
	if resumptions < 3 {
		t.Errorf("only %d training runs resume", resumptions)
	}
}

func compareCalls(t *testing.T, p plannedRun, got, want []call) {
	t.Helper()
	text := func(calls []call) (all []string) {
		for _, c := range calls {
			all = append(all, c.String())
		}
		return all
	}
	if got, want := text(got), text(want); !slices.Equal(got, want) {
		t.Errorf("%+v:\ngot  %s\nwant %s", p, strings.Join(got, ", "), strings.Join(want, ", "))
	}
}

// TestFailed is called once with the error, whatever it is.
func TestFailed(t *testing.T) {
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	var wasStopped *trainer.StoppedError
	var diverged *trainer.DivergedError
	for name, test := range map[string]struct {
		ctx  context.Context
		task trainer.Task
		size int
		is   func(error) bool
	}{
		"told to stop": {stopped, blobTask(plainNet), 12, func(err error) bool { return errors.As(err, &wasStopped) }},
		"diverged": {t.Context(), trainer.Supervised(plainNet, func(_, predictions []*graph.Node) *graph.Node {
			return graph.Log(graph.Neg(graph.ReduceAllSum(graph.Square(predictions[0]))))
		}, trainer.SGD{LearningRate: 1}), 12, func(err error) bool { return errors.As(err, &diverged) }},
		"before the first batch": {t.Context(), blobTask(plainNet), 1000, func(err error) bool { return strings.Contains(err.Error(), "1000") }},
	} {
		var got []error
		failed := trainer.Callback{Failed: func(_ *trainer.Event, err error) { got = append(got, err) }}
		tr, _ := newTrainer(t, trainer.Config{BatchSize: test.size}, test.task, trainer.WithCallbacks(failed))
		err := tr.Fit(test.ctx, ranktest.Blobs(145), nil)
		if err == nil || len(got) != 1 || !test.is(got[0]) || !errors.Is(err, got[0]) {
			t.Errorf("%s: Fit returns %v, Failed gets %v", name, err, got)
		}
	}
}

// TestWithGradients: twice the gradients are twice the rate. They are those of all accumulated
// batches, before clipping.
func TestWithGradients(t *testing.T) { everywhere(t, testWithGradients) }

func testWithGradients(t *testing.T) {
	times := func(factor float64) trainer.Option {
		return trainer.WithGradients(func(_ []*model.Variable, gradients []*graph.Node) []*graph.Node {
			for i, gradient := range gradients {
				gradients[i] = graph.MulScalar(gradient, factor)
			}
			return gradients
		})
	}
	fit := func(rate, clip float64, options ...trainer.Option) []float64 {
		c := trainer.Config{BatchSize: 12, AccumulateGradBatches: 3, MaxSteps: 5, Seed: 5, GradientClipNorm: clip}
		tr, _ := newTrainer(t, c, sgdTask(rate), options...)
		mustFit(t, tr)
		return floats(t, tr)
	}
	want := fit(0.2, 0)
	if d := distance(want, fit(0.1, 0)); d < 1e-3 {
		t.Fatalf("the weights differ by %g with half the rate: the test shows nothing", d)
	}
	if d := distance(want, fit(0.1, 0, times(4), times(0.5))); !(d < 1e-5) {
		t.Errorf("twice the gradients: the weights differ by %g", d)
	}
	if d := distance(fit(0.1, 1e-3), fit(0.1, 1e-3, times(1000))); !(d < 1e-5) {
		t.Errorf("the gradients are changed after they are clipped: the weights differ by %g", d)
	}
}

func TestWithGradientsRefuses(t *testing.T) {
	for want, change := range map[string]trainer.GradientFn{
		"WithGradients: it returns 1 gradient for 4 variables": func(_ []*model.Variable, gradients []*graph.Node) []*graph.Node { return gradients[:1] },
		"WithGradients: the gradient of /hidden/dense/": func(_ []*model.Variable, gradients []*graph.Node) []*graph.Node {
			gradients[0] = graph.ReduceAllSum(gradients[0])
			return gradients
		},
		"WithGradients: the gradient of /logits/dense/": func(_ []*model.Variable, gradients []*graph.Node) []*graph.Node {
			gradients[len(gradients)-1] = nil
			return gradients
		},
	} {
		task := trainer.Supervised(plainNet, loss.SparseCategoricalCrossEntropyLogits, trainer.SGD{LearningRate: 0.1})
		tr, _ := newTrainer(t, trainer.Config{BatchSize: 12}, task, trainer.WithGradients(change))
		if err := tr.Fit(t.Context(), ranktest.Blobs(145), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
