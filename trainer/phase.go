package trainer

import "fmt"

// NextPhase returns a trainer for the next phase of the training, such as fine-tuning with another
// optimizer, after Fit. It begins with the current weights of t, which LoadBest and LoadAverage
// change, and has its world, its output, its further validation sets, and its configuration as
// changed by change, which may be nil. Flags, the environment and a file have the last word, as in
// New. Pass all other options again, such as callbacks; Freeze and ScaleRate of this phase have no
// effect on the next one.
//
//	check(first.Fit(ctx, trainSet, validationSet))
//	second, err := first.NextPhase(task, func(c *trainer.Config) { c.MaxEpochs = 5 }, trainer.ScaleRate("/body", 0.1))
//	check(second.Fit(ctx, trainSet, validationSet))
//
// A phase counts its epochs and steps from 0. It has its own checkpoints and metrics, in the same
// run directory: its name is that of the first phase, followed by "-phase-2", as is its folder of
// checkpoints. A program that was killed calls the same methods again when it restarts: Fit doesn't
// train a phase that has ended, and resumes the one that has not.
func (t *Trainer) NextPhase(task Task, change func(*Config), options ...Option) (*Trainer, error) {
	c := t.given
	if change != nil {
		change(&c)
	}
	c.Name, c.phase = t.given.Name, t.given.phase+1
	if c.Name == "" {
		c.Name = t.config.Name
	}
	inherited := []Option{WithOutput(t.out), InitFromTrainer(t), func(next *Trainer) { next.further = append(next.further, t.further...) }}
	return New(t.world, c, task, append(inherited, options...)...)
}

// inPhase returns the configuration with the name and the folder of its phase.
func (c Config) inPhase() Config {
	if c.phase == 0 {
		return c
	}
	suffix := fmt.Sprintf("-phase-%d", c.phase+1)
	c.Name += suffix
	if c.Checkpoint.Dir != "" {
		c.Checkpoint.Dir += suffix
	}
	return c
}
