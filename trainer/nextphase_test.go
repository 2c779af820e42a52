package trainer_test

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/gomlx/gomlx/ml/train/metric"

	"gonbatch/data"
	"gonbatch/distributed/ranktest"
	"gonbatch/trainer"
)

// sgdPhase trains by SGD, with an accuracy.
func sgdPhase() trainer.Task {
	accuracy := metric.NewSparseCategoricalAccuracy("Mean Accuracy", "#acc")
	return trainer.Supervised(smallNet, loss.SparseCategoricalCrossEntropyLogits, trainer.SGD{LearningRate: 0.05, Momentum: 0.9}, accuracy)
}

// threePhases trains three phases one after another, as a program does: with Adam, by SGD with a
// frozen layer, and by SGD with two epochs more. The one with this number is killed after a step.
func threePhases(t *testing.T, dir string, killed int, step int64) (all []*trainer.Trainer, err error) {
	t.Helper()
	kill := func(number int) trainer.Option {
		if number != killed {
			return killAt(0)
		}
		return killAt(step)
	}
	c := trainer.Config{
		Name: "net", MaxEpochs: 2, BatchSize: 12, Seed: 4, Loggers: []string{"none"},
		Checkpoint: trainer.CheckpointConfig{EverySteps: 2, Dir: filepath.Join(dir, "checkpoints")},
	}
	first, out := newTrainer(t, c, blobTask(smallNet), trainer.WithValidation("other", otherSet), kill(0))
	fit := func(tr *trainer.Trainer) error {
		all = append(all, tr)
		return tr.Fit(t.Context(), data.Range(ranktest.Blobs(60), 0, 53), ranktest.Blobs(20))
	}
	if err := fit(first); err != nil {
		return all, err
	}
	second, err := first.NextPhase(sgdPhase(), nil, trainer.Freeze("/first"), kill(1))
	if err != nil {
		t.Fatal(err)
	}
	if err := fit(second); err != nil {
		return all, err
	}
	third, err := second.NextPhase(sgdPhase(), func(c *trainer.Config) { c.MaxEpochs += 2 }, kill(2))
	if err != nil {
		t.Fatal(err)
	}
	if err := fit(third); err != nil {
		return all, err
	}
	if first.World().IsMain() && (!strings.Contains(out.String(), "net-phase-2: ") || !strings.Contains(out.String(), "net-phase-3: ")) {
		t.Errorf("the phases don't have the same output:\n%s", out)
	}
	return all, nil
}

// TestNextPhase: each phase begins with the weights of the one before, and has its own optimizer,
// frozen scopes, configuration and folder. A program that is killed in any phase, even twice, ends
// with the same weights when it is started again, and what it reports tells the phases apart.
func TestNextPhase(t *testing.T) { everywhere(t, testNextPhase) }

func testNextPhase(t *testing.T) {
	dir := t.TempDir()
	whole, err := threePhases(t, dir, -1, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"net", "net-phase-2", "net-phase-3"} {
		c := whole[i].Config()
		if folder := filepath.Join(dir, "checkpoints") + strings.TrimPrefix(name, "net"); c.Name != name || c.Checkpoint.Dir != folder {
			t.Errorf("phase %d is %q in %s, want %s", i+1, c.Name, c.Checkpoint.Dir, folder)
		}
	}
	for i, steps := range []int64{8, 8, 16} {
		if got := whole[i].Step(); got != steps {
			t.Errorf("phase %d has %d steps, want %d", i+1, got, steps)
		}
	}
	if !slices.Equal(trainedFloats(t, whole[0], "/first"), trainedFloats(t, whole[1], "/first")) {
		t.Error("the frozen layer has changed")
	}
	if d := distance(trainedFloats(t, whole[0], "/logits"), trainedFloats(t, whole[1], "/logits")); !(d > 1e-3 && d < 3) {
		t.Errorf("the second phase has changed the other layer by %g", d)
	}
	if slices.Equal(trainedFloats(t, whole[1], "/first"), trainedFloats(t, whole[2], "/first")) {
		t.Error("the layer stays frozen in the third phase")
	}
	for number, step := range []int64{3, 5, 9} {
		again := t.TempDir()
		for range 2 {
			began := world(t).Reached()
			if all, err := threePhases(t, again, number, step); !errors.Is(err, errKilled) || len(all) != number+1 {
				t.Fatalf("killed in phase %d: %d phases, %v", number+1, len(all), err)
			}
			if got, want := world(t).Reached()-began, int64(10*number+2)+step; got != want { // 2 after each phase.
				t.Errorf("killed in phase %d after step %d: the program reports that it got to step %d, want %d, as in the start before", number+1, step, got, want)
			}
		}
		resumed, err := threePhases(t, again, -1, 0)
		if err != nil {
			t.Fatal(err)
		}
		compareWeights(t, weights(t, resumed[2].Store()), weights(t, whole[2].Store()))
	}
}

// TestNextPhaseOfUnnamed: the phases of a training without a name have that of the program.
func TestNextPhaseOfUnnamed(t *testing.T) {
	c := trainer.Config{MaxSteps: 2, BatchSize: 12, Loggers: []string{"none"}, Checkpoint: trainer.CheckpointConfig{Off: true}}
	first, _ := newTrainer(t, c, blobTask(plainNet))
	mustFit(t, first)
	second, err := first.NextPhase(blobTask(plainNet), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := second.Config().Name, first.Config().Name+"-phase-2"; got != want || second.Config().Checkpoint.Dir != "" {
		t.Errorf("got %q, want %q", got, want)
	}
	mustFit(t, second)
}

// twoPhases returns a training of that many epochs, after its end, and its next phase, which Fit
// has yet to train.
func twoPhases(t *testing.T, dir string, epochs int, options ...trainer.Option) (first, second *trainer.Trainer) {
	t.Helper()
	c := inFolder(dir)
	c.MaxEpochs = epochs
	first, _ = newTrainer(t, c, blobTask(plainNet), options...)
	mustFit(t, first)
	second, err := first.NextPhase(blobTask(plainNet), func(c *trainer.Config) { c.MaxEpochs = 1 })
	if err != nil {
		t.Fatal(err)
	}
	return first, second
}

// TestNextPhaseMust: a program that was killed in its first phase can restart with
// checkpoint.resume "must".
func TestNextPhaseMust(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "checkpoints")
	twoPhases(t, dir, 1)
	t.Setenv("TRAINER_CHECKPOINT_RESUME", "must")
	first, second := twoPhases(t, dir, 1)
	mustFit(t, second)
	if got := first.Config().Checkpoint.Resume; got != "must" {
		t.Errorf("the first phase has checkpoint.resume %q", got)
	}
}

// TestNextPhaseOutOfDate: a phase does not resume after an earlier one has trained on.
func TestNextPhaseOutOfDate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "checkpoints")
	first, second := twoPhases(t, dir, 1)
	mustFit(t, second)
	before := first.Step()
	_, second = twoPhases(t, dir, 1)
	mustFit(t, second)

	first, second = twoPhases(t, dir, 2)
	want := fmt.Sprintf("phase 1 had ended after step %d, but phase 1 has ended after step %d now: to train this phase again, remove or rename %s-phase-2", before, first.Step(), dir)
	for range 2 {
		if err := second.Fit(t.Context(), ranktest.Blobs(145), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Fatalf("got %v, want %q", err, want)
		}
	}
	if err := os.Rename(dir+"-phase-2", dir+"-old"); err != nil {
		t.Fatal(err)
	}
	_, second = twoPhases(t, dir, 2)
	mustFit(t, second)
}

// noted is a logger that keeps hyper-parameters.
type noted struct {
	*ledger
	params map[string]any
}

func (n noted) Params(params map[string]any) error {
	maps.Copy(n.params, params)
	return nil
}

// TestNextPhaseFlags: flags and the environment don't change what the program sets for a phase, and
// the trainer says so; the parameters of LogParams are those of all phases that follow.
func TestNextPhaseFlags(t *testing.T) {
	t.Setenv("TRAINER_MAX_EPOCHS", "2")
	t.Setenv("TRAINER_LOG_EVERY", "7")
	c := inFolder(t.TempDir())
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	c.AddFlags(flags)
	if err := flags.Parse([]string{"-gradient_clip_norm", "0.5", "-drop_last=false"}); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	first, _ := newTrainer(t, c, blobTask(plainNet), trainer.WithOutput(&out))
	if err := first.LogParams(map[string]any{"width": 7}); err != nil {
		t.Fatal(err)
	}
	mustFit(t, first)
	log := noted{&ledger{map[string]float64{}}, map[string]any{}}
	second, err := first.NextPhase(blobTask(plainNet), func(c *trainer.Config) { c.MaxEpochs, c.GradientClipNorm, c.DropLast = 3, 1, new(true) }, trainer.WithLogger(log))
	if err != nil {
		t.Fatal(err)
	}
	mustFit(t, second)
	third, err := second.NextPhase(blobTask(plainNet), func(c *trainer.Config) { c.LogEvery = 9 })
	if err != nil {
		t.Fatal(err)
	}
	got := first.Config()
	for i, got := range []trainer.Config{second.Config(), third.Config()} {
		if got.MaxEpochs != 3 || got.GradientClipNorm != 1 || !*got.DropLast || got.LogEvery != []int{7, 9}[i] {
			t.Errorf("phase %d: %d epochs, clip norm %g, drop last %v, log every %d", i+2, got.MaxEpochs, got.GradientClipNorm, *got.DropLast, got.LogEvery)
		}
	}
	if got.MaxEpochs != 2 || got.GradientClipNorm != 0.5 || *got.DropLast {
		t.Errorf("phase 1: %d epochs, clip norm %g, drop last %v", got.MaxEpochs, got.GradientClipNorm, *got.DropLast)
	}
	for _, want := range []string{"-phase-2: warning: max_epochs: the program sets 3 for this phase; 2, of a flag, the environment or a file, is for the phases before", "drop_last: the program sets true", "gradient_clip_norm: the program sets 1"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the output lacks %q:\n%s", want, out.String())
		}
	}
	if log.params["width"] != 7 || log.params["max_epochs"] != "3" {
		t.Errorf("phase 2 has logged %v", log.params)
	}
}

// TestNextPhaseStore: a phase has the hyper-parameters of the one before, but not its store.
func TestNextPhaseStore(t *testing.T) {
	store := model.NewStore()
	store.SetParam("/hidden/activation", "tanh")
	first, second := twoPhases(t, filepath.Join(t.TempDir(), "checkpoints"), 1, trainer.WithStore(store))
	if got, _ := second.Store().GetParam("/hidden/activation"); got != "tanh" || second.Store() == store {
		t.Errorf("the hyper-parameter is %v", got)
	}
	if _, err := first.NextPhase(blobTask(plainNet), nil, trainer.WithStore(store)); err == nil || !strings.Contains(err.Error(), "the store of the phase before") {
		t.Errorf("got %v, want the store to be refused", err)
	}
	if got, err := first.NextPhase(blobTask(plainNet), nil, trainer.WithStore(model.NewStore())); err != nil {
		t.Error(err)
	} else if _, found := got.Store().GetParam("/hidden/activation"); found {
		t.Error("WithStore keeps the hyper-parameters of the phase before")
	}
}
