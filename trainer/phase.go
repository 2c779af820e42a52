package trainer

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/gomlx/gomlx/ml/model"
)

// NextPhase returns a trainer for the next phase of the training, such as fine-tuning with another
// optimizer, after Fit. It begins with the current weights of t, which LoadBest and LoadAverage
// change, and has its world, its output, its further validation sets, its hyper-parameters, and its
// configuration as changed by change, which may be nil. Flags, the environment and a file change it
// too, as in New, but not the fields to which change gives other values: -max_epochs is for the
// first phase if the second has another number of its own. Parameters of LogParams are logged
// again. Pass all other options again, such as callbacks; Freeze and ScaleRate of this phase have
// no effect on the next one. WithStore replaces the hyper-parameters; the store of t is an error.
//
//	check(first.Fit(ctx, trainSet, validationSet))
//	second, err := first.NextPhase(task, func(c *trainer.Config) { c.MaxEpochs = 5 }, trainer.ScaleRate("/body", 0.1))
//	check(second.Fit(ctx, trainSet, validationSet))
//
// A phase counts its epochs and steps from 0. It has its own checkpoints and metrics, in the same
// run directory: its name is that of the first phase, followed by "-phase-2", as is its folder of
// checkpoints. A program that was killed calls the same methods again when it restarts: Fit doesn't
// train a phase that has ended, and resumes the one that has not. Checkpoint.Resume "must" applies
// to the first phase; in the others it means "auto". If an earlier phase has trained on since this
// one began, such as with a higher MaxEpochs, Fit returns an error instead of resuming from weights
// that are out of date.
func (t *Trainer) NextPhase(task Task, change func(*Config), options ...Option) (*Trainer, error) {
	c := t.given
	if change != nil {
		change(&c)
	}
	c.ofPhase = map[string]bool{}
	maps.Copy(c.ofPhase, t.given.ofPhase)
	for name, f := range t.given.fields() {
		if !reflect.DeepEqual(f.value.Interface(), c.fields()[name].value.Interface()) {
			c.ofPhase[name] = true
		}
	}
	c.Name, c.phase = t.given.Name, t.given.phase+1
	if c.Name == "" {
		c.Name = t.config.Name
	}
	inherit := func(next *chosen) {
		next.store, next.out = storeLike(t.store), t.out
		next.further = append(next.further, t.further...)
		next.ownParams = maps.Clone(t.ownParams)
		next.beganAfter = append(slices.Clone(t.beganAfter), t.weightsStep())
	}
	check := func(next *chosen) {
		if next.store == t.store {
			next.refused = errors.New("NextPhase: WithStore has the store of the phase before, with its optimizer's state and steps: use another store, or omit WithStore to keep the hyper-parameters")
		}
	}
	return New(t.world, c, task, slices.Concat([]Option{inherit, InitFromTrainer(t)}, options, []Option{check})...)
}

// storeLike returns a store without variables that has the hyper-parameters of another one.
func storeLike(other *model.Store) *model.Store {
	store := model.NewStore()
	for path, value := range other.IterParams() {
		store.SetParam(path, value)
	}
	return store
}

// weightsStep returns the number of updates of the weights in the store. Before Fit, they are the
// checkpoint's.
func (t *Trainer) weightsStep() int64 {
	if t.life < resumed && t.origin.Found {
		return t.origin.At.Step
	}
	return t.at.Step
}

// comparePhases returns an error if an earlier phase has trained on since this one began, because
// the position's weights are still those of its old end.
func (t *Trainer) comparePhases(at position) error {
	for i := range min(len(at.BeganAfter), len(t.beganAfter)) {
		if before, now := at.BeganAfter[i], t.beganAfter[i]; before != now {
			return fmt.Errorf("it began when phase %d had ended after step %d, but phase %d has ended after step %d now: to train this phase again, remove or rename %s", i+1, before, i+1, now, t.folder.Path)
		}
	}
	return nil
}

// inPhase returns the configuration with the name and the folder of its phase. A later phase has no
// checkpoint yet if the program was killed in an earlier one, so it need not have one.
func (c Config) inPhase() Config {
	if c.phase == 0 {
		return c
	}
	suffix := fmt.Sprintf("-phase-%d", c.phase+1)
	c.Name += suffix
	if c.Checkpoint.Dir != "" {
		c.Checkpoint.Dir += suffix
	}
	if c.Checkpoint.Resume == "must" {
		c.Checkpoint.Resume = "auto"
	}
	return c
}
