package trainer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"time"

	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/data"
	"gonbatch/data/load"
	"gonbatch/distributed"
	"gonbatch/internal/unread"
	"gonbatch/trainer/internal/profile"
	"gonbatch/trainer/internal/step"
	"gonbatch/trainer/internal/stop"
)

// Fit trains until it reaches one of the configured limits. validation may be nil. WithValidation
// adds further validation sets.
//
// If the folder of checkpoints has one of this training run, Fit resumes it: at the same batch,
// with the same weights, optimizer state and random numbers. This is exact if the number of ranks
// is the same. A training run that has ended stays ended, unless the limit that ended it is higher
// now. A trainer trains once: calling Fit after the end is an error.
//
// If the job is told to stop (by SIGUSR1, SIGTERM or SIGINT, or because the context ends), all
// ranks stop after the same update and save, and Fit returns a *StoppedError. In a job that submit
// started, Fit ends the process instead, with the exit code that makes the job start again. If a
// loss is no longer finite, the error is a *DivergedError.
func (t *Trainer) Fit(ctx context.Context, training, validation data.Dataset) (err error) {
	defer func() {
		if _, stopped := errors.AsType[*StoppedError](err); !stopped { // Someone asked for that.
			err = unread.Error("trainer.Fit", err)
		}
	}()
	t.told = nil
	if err = t.fit(ctx, training, validation); err == nil {
		t.life = fitted
		t.listener.Heed()
		return nil
	}
	t.failed(err)
	var stopped *StoppedError
	if code := t.env.RequeueCode; code != 0 && errors.As(err, &stopped) && stopped.Requeue {
		t.printf("%v\n", err)
		stop.Ignore() // They may arrive again while the loggers finish.
		if err := errors.Join(t.world.Close(), t.env.MarkStopped()); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(code)
	}
	return fmt.Errorf("trainer: %s: %w", t.config.Name, placed(t.initial.Explain(err)))
}

func (t *Trainer) fit(ctx context.Context, training, validation data.Dataset) error {
	if t.life == fitting {
		return errors.New("Fit is running already: a callback can't call it")
	}
	if t.life == fitted {
		return fmt.Errorf("its training has ended (%s), and a trainer trains only once: make another one with trainer.New, with its own folder (checkpoint.dir)", t.at.End.Reason)
	}
	if t.loaded != "" {
		return fmt.Errorf("the weights of the training were replaced by those of %s: call Fit before LoadBest and LoadAverage, or make another trainer", t.loaded)
	}
	if validation == nil && len(t.further) > 0 {
		return errors.New("there is no validation set, but WithValidation adds further ones: give Fit the first")
	}
	if training == nil {
		return fmt.Errorf("the training set %w", errNoDataset)
	}
	identity, err := t.ranksAgree(training, validation)
	if err != nil {
		return err
	}
	means := meaningOf(training)
	if err := t.checkMeanings(means, validation); err != nil {
		return err
	}
	l, err := t.loader(training)
	if err != nil {
		return err
	}
	defer l.Close()
	if err := t.checkMonitors(validation != nil); err != nil {
		return err
	}
	if t.plan, err = newPlan(t.config, training, l); err != nil {
		return err
	}
	if err := t.resume(identity); err != nil {
		return err
	}
	t.means, t.at.Facts, t.at.Means = means, identity, means
	t.validateOn(t.validationSets(validation))
	if err := t.resumeStream(l); err != nil {
		return err
	}
	if err := t.rewindLoggers(); err != nil {
		return err
	}
	if err := t.world.PrepareSums(); err != nil { // For votes and reports.
		return err
	}
	stopper := stop.New(ctx, t.world, t.at.Step, time.Now)
	defer stopper.Close()
	t.listener.Begin(stopper)
	defer t.listener.End()
	run := &run{Trainer: t, loader: l, validation: validation, stop: stopper, began: time.Now(), firstStep: t.at.Step, before: t.at.Elapsed, lastSave: time.Now()}
	t.display.Start(run.view())
	defer t.display.End()
	t.life = fitting
	defer func() { t.life = ready }()
	t.reportProgress() // If a start dies before its next update, it got this far.
	defer t.world.Idle()
	defer t.folder.Release()
	defer t.recorder.Drop()
	if err := run.fit(training); err != nil {
		return err
	}
	t.folder.End(t.config.Name)
	return nil
}

// reportProgress tells the world how far the training has come. A Fit that has nothing left to do
// says so too, so the next trainer counts its updates from the same number in each start.
func (t *Trainer) reportProgress() {
	if t.earlier == nil {
		earlier := t.world.Reached()
		t.earlier = &earlier
	}
	t.world.ProgressAfter(*t.earlier, t.at.Step)
}

// loader returns the loader of a training run. It continues with the next epoch while the work at
// the end of one is done.
func (t *Trainer) loader(training data.Dataset) (distributed.Loader, error) {
	c, limit := t.config, 0
	if _, ok := training.(*data.Streamed); ok && c.OverfitBatches > 0 {
		return nil, fmt.Errorf("overfit_batches: %d, but %s is a stream, which has no batch twice: use a dataset", c.OverfitBatches, training.Name())
	}
	for _, batches := range []int{c.LimitTrainBatches, c.OverfitBatches} {
		if batches > 0 && (limit == 0 || batches < limit) {
			limit = batches
		}
	}
	t.step.Train.Forget()
	return t.world.Loader(training, distributed.LoaderOptions{
		BatchSize: c.BatchSize, Limit: limit, Shuffle: !c.inOrder(), FillLast: !*c.DropLast, Seed: c.Seed,
		Loading: distributed.Loading(c.Loader), Epochs: cmp.Or(c.MaxEpochs, math.MaxInt), ModelParallel: c.ModelParallel,
		Observe: func(phase string, began time.Time) { t.recorder.Add(profile.Loading, phase, began, time.Now(), 0) },
		Check:   t.step.Train.Check,
	})
}

// run is one call of Fit.
type run struct {
	*Trainer
	loader                    distributed.Loader
	validation                data.Dataset
	stop                      *stop.Stopper
	began                     time.Time     // When this Fit began.
	firstStep                 int64         // Updates that were done when this Fit began.
	before                    time.Duration // Training time of the earlier Fits that this one resumes.
	lastSave                  time.Time
	unreported                int  // Batches of this call since the last report.
	saveDue                   bool // A checkpoint must be written at the next possible point.
	stopped                   int32
	clock                     clock
	lossScale, skippedUpdates float64   // Of 16-mixed.
	firstLoss                 float64   // Of this rank's first batch in this Fit; 0 once sayGrown has warned.
	kind                      step.Kind // Of the step that runs now.
}

func (r *run) fit(training data.Dataset) error {
	if r.at.Finished {
		return r.restoreAll() // No step will ask for the variables.
	}
	r.sayNever(training)
	if err := r.logParams(training); err != nil {
		return err
	}
	if err := r.call(onFitStart); err != nil {
		return err
	}
	if err := r.validateAgain(); err != nil {
		return r.withSaved(err)
	}
	for r.stopped <= stop.TimeIsUp && (!r.ended() || r.atEpochEnd()) {
		if err := r.epoch(); err != nil {
			return r.withSaved(err)
		}
	}
	if !r.step.Built && r.snapshot == nil {
		r.finishAtLimit()
		return r.call(onFitEnd) // A callback ended it before there was a model to save.
	}
	if err := r.restoreAll(); err != nil {
		return err
	}
	if r.stopped > stop.TimeIsUp {
		return r.saveAndStop()
	}
	r.finishAtLimit()
	r.at.Finished = true
	if err := r.save(); err != nil {
		return err
	}
	if err := errors.Join(r.folder.Wait(), r.endProfile()); err != nil { // Only rank 0 may have failed to save.
		return err
	}
	if err := r.logModel(); err != nil {
		return err
	}
	return r.call(onFitEnd)
}

// validateAgain does the validation that was due when the training was stopped. If it is the best,
// the checkpoint of that update is written again, with its metrics.
func (r *run) validateAgain() error {
	if err := r.validateIfDue(); err != nil || !r.saveDue {
		return err
	}
	return r.save() // Also what no graph has asked for yet.
}

// atEpochEnd reports whether all batches of the epoch are done, while the work at its end is still
// pending.
func (r *run) atEpochEnd() bool { return r.at.Batch >= r.plan.batches }

// elapsed returns the training time, restarts included.
func (r *run) elapsed() time.Duration { return r.before + time.Since(r.began) }

// epoch trains the rest of the epoch.
func (r *run) epoch() error {
	if r.at.Batch == 0 {
		if err := r.call(onEpochStart); err != nil {
			return err
		}
	}
	if !r.atEpochEnd() {
		if err := r.batches(); err != nil {
			return fmt.Errorf("epoch %d, batch %d, rank %d: %w", r.at.Epoch+1, r.at.Batch+1, r.world.Rank(), err)
		}
	}
	if !r.atEpochEnd() || r.stopped > stop.TimeIsUp {
		return nil // Stopped before the epoch's end.
	}
	return r.endEpoch()
}

func (r *run) batches() error {
	first := r.at.Batch
	r.loader.Seek(r.at.Epoch, first)
	if err := r.rates.set(int(r.at.Step), r.plan.updates); err != nil {
		return err
	}
	r.clock.begin()
	program := func(i int) *distributed.Program { // Called when the batch is there.
		asked, arrived := r.clock.arrives()
		r.recorder.Add(profile.Training, "wait for batch", asked, arrived, r.at.Step+1)
		r.kind = r.kindOf(first + i)
		return r.step.Training(r.kind)
	}
	if err := r.beforeBatch(); err != nil {
		return err
	}
	for results, err := range r.world.RunSteps(r.loader, program) {
		if err != nil {
			return err
		}
		if err := r.afterBatch(results); err != nil {
			return err
		}
		// The loop ends only at an update: each rank has its own part of the accumulated gradients.
		if r.plan.isUpdate(r.at.Batch-1) && (r.atEpochEnd() || r.stopped > stop.GoOn || r.ended()) {
			break
		}
		if err := r.beforeBatch(); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) beforeBatch() error {
	if err := r.profile(); err != nil {
		return err
	}
	if err := r.call(onBatchStart); err != nil {
		return err
	}
	r.clock.asks()
	return nil
}

// afterBatch does the bookkeeping after a batch. All ranks do the work that follows an update after
// the same update.
func (r *run) afterBatch(results []*tensors.Tensor) error {
	update := r.plan.isUpdate(r.at.Batch)
	result, err := r.step.Take(results)
	if err == nil {
		err = r.takeLosses(result)
	}
	if err != nil {
		return err
	}
	began, ended := r.clock.ends(r.kind)
	r.recorder.Add(profile.Training, profile.StepName, began, ended, r.at.Step+1)
	r.at.Batch++
	r.unreported++
	r.at.Stream = r.loader.Position()
	if update {
		r.at.Step++
		r.reportProgress()
	}
	r.display.Batch(r.view())
	if err := r.call(onBatchEnd); err != nil || !update {
		return err
	}
	return r.afterUpdate(result.Gradients)
}

func (r *run) afterUpdate(gradients []float32) error {
	if err := r.logHistograms(gradients); err != nil {
		return err
	}
	if err := r.rates.set(int(r.at.Step), r.plan.updates); err != nil {
		return err
	}
	if r.reportIsDue() {
		if err := r.report(); err != nil {
			return err
		}
	}
	if err := r.validateIfDue(); err != nil || r.stopped > stop.TimeIsUp {
		return err
	}
	if r.world.IsMain() && r.config.MaxTime > 0 && r.elapsed() >= r.config.MaxTime {
		r.stop.Tell(stop.TimeIsUp)
	}
	cause, save, err := r.stop.Agreed(r.at.Step, r.saveIsDue(), r.untilDue())
	if err != nil {
		return err
	}
	if r.stopped = cause; cause == stop.TimeIsUp {
		r.finish(endedByTime, fmt.Sprintf("max_time of %s is over", r.config.MaxTime))
	}
	r.saveDue = r.saveDue || save || r.stepIsDue()
	if r.saveDue && !r.atEpochEnd() {
		return r.save()
	}
	return nil
}

// kindOf returns the kind of program that a batch of an epoch, counted from 0, needs.
func (r *run) kindOf(batch int) step.Kind {
	every := int64(r.config.LogHistogramsEvery)
	switch {
	case !r.plan.isUpdate(batch):
		return step.Accumulates
	case every > 0 && (r.at.Step+1)%every == 0:
		return step.UpdatesAndShows
	}
	return step.Updates
}

func (r *run) endEpoch() error {
	if r.config.ValCheckInterval == 0 && (r.at.Epoch+1)%r.config.CheckValEveryNEpoch == 0 && r.at.Validated != r.at.Step {
		if err := r.validate(); err != nil || r.stopped > stop.TimeIsUp {
			return err
		}
	}
	if err := r.call(onEpochEnd); err != nil {
		return err
	}
	r.at.Epoch++
	r.at.Batch = 0
	if r.saveDue || r.epochIsDue() {
		return r.save()
	}
	return nil
}

// withSaved saves what was trained before an example that can't be loaded: it can be fixed, and the
// training resumed. With several ranks the others are in the middle of a step, so the newest
// checkpoint counts.
func (r *run) withSaved(err error) error {
	var failed *load.Error
	atUpdate := r.at.Batch == 0 || r.plan.isUpdate(r.at.Batch-1)
	if !errors.As(err, &failed) || r.world.Size() > 1 || !atUpdate || !r.step.Built || r.folder == nil {
		return err
	}
	if saveErr := errors.Join(r.save(), r.folder.Wait()); saveErr != nil {
		return errors.Join(err, saveErr)
	}
	return fmt.Errorf("%w; the training up to step %d is saved", err, r.at.Step)
}

// saveAndStop saves a checkpoint when the training was told to stop.
func (r *run) saveAndStop() error {
	if err := r.save(); err != nil {
		return err
	}
	if err := errors.Join(r.folder.Wait(), r.endProfile()); err != nil {
		return err
	}
	return &StoppedError{Step: r.at.Step, Checkpoint: r.folder.Name(), Requeue: r.stopped == stop.Terminated && r.folder != nil}
}
