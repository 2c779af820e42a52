package trainer

import (
	"errors"
	"fmt"

	"gonbatch/checkpoint"
	"gonbatch/internal/plural"
	"gonbatch/internal/unread"
	"gonbatch/trainer/internal/saved"
)

// LoadBest gives the model the weights of its best checkpoint according to checkpoint.monitor
// (default: val/loss). Test, Validate and Predict use them from then on. Call it after Fit or, in a
// program that only tests or predicts, instead of Fit. It is collective.
//
// The trainer can't train afterwards: Fit returns an error. With FastDevRun, which writes no
// checkpoints, LoadBest keeps the weights and prints a message.
func (t *Trainer) LoadBest() (err error) {
	defer func() { err = unread.Error("trainer.LoadBest", err) }()
	if err := t.loadBest(); err != nil {
		return fmt.Errorf("trainer: %s: load the best weights: %w", t.config.Name, placed(err))
	}
	return nil
}

func (t *Trainer) loadBest() error {
	if t.config.FastDevRun {
		t.printf("%s: fast_dev_run writes no checkpoints: LoadBest keeps the weights\n", t.config.Name)
		return nil
	}
	if err := t.checkBest(); err != nil {
		return err
	}
	var best *checkpoint.Snapshot
	var from origin
	err := t.world.OnMain(func() (err error) { best, from, err = t.readBest(); return err })
	if err != nil {
		return err
	}
	if from, err = saved.Broadcast(t.world, from); err != nil {
		return err
	}
	if err := t.comparePrecision(from.At); err != nil {
		return fmt.Errorf("%s: %w", from.Path, err)
	}
	if best, err = saved.Share(t.world, best); err != nil {
		return err
	}
	return t.use(best, from)
}

// checkBest returns an error if LoadBest can't have a best checkpoint.
func (t *Trainer) checkBest() error {
	switch {
	case t.life == fitting && !t.at.Finished:
		return errors.New("Fit is training now: call LoadBest after it, or in a callback's FitEnd")
	case t.folder == nil && t.config.Checkpoint.Off:
		return errors.New("checkpoint.off is set, so there are no checkpoints")
	case t.folder == nil:
		return errors.New("there is no folder of checkpoints: set checkpoint.dir")
	case t.config.Checkpoint.Monitor == "":
		return errors.New("checkpoint.monitor is empty: set it to the metric that says which checkpoint is best, such as val/loss")
	}
	return nil
}

// readBest does rank 0's part of LoadBest.
func (t *Trainer) readBest() (*checkpoint.Snapshot, origin, error) {
	if err := t.folder.Wait(); err != nil {
		return nil, origin{}, err
	}
	best, err := t.folder.Dir.Best(func(message string) { t.printf("checkpoint: %s\n", message) })
	if err != nil {
		return nil, origin{}, err
	}
	if best == nil {
		return nil, origin{}, fmt.Errorf("no checkpoint in %s has the metric %q: %s", t.folder.Path, t.config.Checkpoint.Monitor, t.toMeasure())
	}
	from, err := originOf(best)
	return best, from, err
}

// toMeasure says how to get a checkpoint with the monitored metric.
func (t *Trainer) toMeasure() string {
	every := t.config.CheckValEveryNEpoch
	switch {
	case t.at.Epoch == 0:
		return "it is measured at the end of an epoch, and the training ended before: train longer"
	case t.at.Epoch < every:
		return fmt.Sprintf("it is measured every %s (check_val_every_n_epoch), and the training ended before: train longer, or lower check_val_every_n_epoch", plural.Of(every, "epoch"))
	}
	return "give Fit a validation set (if it had one, the metric was never a finite number there), or set checkpoint.monitor to train/loss"
}

// use gives the model the weights of a checkpoint.
func (t *Trainer) use(best *checkpoint.Snapshot, from origin) error {
	if err := best.RestoreWeights(t.store, func(string) bool { return true }); err != nil {
		return err
	}
	if !t.step.Built {
		t.snapshot = best // Compared with the model once it is built.
	}
	if t.life < resumed {
		t.sayBuild(from)
	}
	if otherSet(t.config.Checkpoint.Monitor, from.At.Validation, t.at.Validation) {
		t.printf("%swarning: %s was the best of its validations, which were of another set\n", t.label(), from.Path)
	}
	t.looked, t.said, t.loaded, t.means = true, true, from.Path, from.At.Means
	metric := t.config.Checkpoint.Monitor
	t.printf("%s: the weights are those after step %d, the best by %s (%.6g), from %s\n", t.config.Name, from.At.Step, metric, best.Metrics[metric], from.Path)
	return nil
}
