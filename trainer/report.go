package trainer

import (
	"errors"

	"gonbatch/logger"
	"gonbatch/trainer/internal/show"
)

// losses returns the running mean of one of a step's metrics since the last report; metric 0 is the
// loss.
func (p *position) losses(i int) *mean {
	for len(p.Since) <= i {
		p.Since = append(p.Since, mean{})
	}
	return &p.Since[i]
}

// report logs the losses since the last report, as means over all ranks and batches, and the share
// of the epoch so far in which the devices waited for data.
func (r *run) report() error {
	defer r.recorder.During("report")()
	sums := make([]float64, 0, 2*len(r.at.Since))
	for _, m := range r.at.Since {
		sums = append(sums, float64(m.Sum), m.Count)
	}
	sums = append(sums, r.clock.waited.Seconds(), r.clock.stepped.Seconds())
	if err := r.world.AllReduceSum(sums); err != nil {
		return err
	}
	waited, stepped := sums[len(sums)-2], sums[len(sums)-1]
	sums = sums[:len(sums)-2]
	if len(sums) > 1 && sums[1] == 0 && !r.step.ScalesLoss() && !r.saidNaN {
		r.saidNaN = true
		r.printf("%swarning: no label of the last batches has counted for the loss, before update %d: are all of them masked, or are their weights 0?\n", r.label(), r.at.Step)
	}
	r.at.Since = nil
	values := r.rates.at(int(r.at.Step)-1, r.plan.updates)
	for i, name := range r.trainingNames() {
		if 2*i < len(sums) {
			values[name] = sums[2*i] / sums[2*i+1] // NaN if none was finite.
		}
	}
	values["train/examples_per_second"] = r.display.Rate(r.unreported * r.loader.BatchSize())
	r.unreported = 0
	if waited+stepped > 0 {
		values["train/data_wait"] = waited / (waited + stepped)
	}
	if r.step.ScalesLoss() {
		values["train/loss_scale"], values["train/skipped_updates"] = r.lossScale, r.skippedUpdates
	}
	values["epoch"] = float64(r.at.Epoch) + float64(r.at.Batch)/float64(r.plan.batches)
	r.keep(values)
	r.sayGrown(values["train/loss"])
	r.display.Report(r.view(), r.metrics["train/loss"], r.metrics["train/examples_per_second"], r.metrics["train/data_wait"])
	return r.log(values)
}

// muchGrown is how many times as large as at first, and as 1, a loss is only if the training
// diverges.
const muchGrown = 1000

// sayGrown warns once if the loss has grown out of all proportion: it may remain finite for long.
func (r *run) sayGrown(loss float64) {
	if r.firstLoss > 0 && loss > muchGrown*max(1, r.firstLoss) {
		r.printf("%swarning: train/loss was %.4g in the first batch, and is %.4g now: the training diverges, perhaps because the learning rate is too high\n", r.label(), r.firstLoss, loss)
		r.firstLoss = 0
	}
}

// keep records the newest metrics.
func (t *Trainer) keep(values Metrics) {
	for name, value := range values {
		t.metrics[name] = value
	}
}

// log passes metrics to rank 0's loggers.
func (t *Trainer) log(values Metrics) error {
	if t.logger == nil {
		return nil
	}
	err := t.logger.Scalars(t.weightsStep(), values)
	if errors.Is(err, logger.ErrClosed) {
		t.listener.Wait()
		return nil
	}
	return err
}

// view returns where the training is, for those who watch.
func (r *run) view() show.View {
	return show.View{
		Label: r.label(), Epoch: r.at.Epoch, MaxEpochs: r.config.MaxEpochs, Batches: int64(r.at.Epoch*r.plan.batches + r.at.Batch), Step: r.at.Step,
		Updates: r.plan.updates, PerUpdate: r.plan.perUpdate, Loss: r.loss, Trained: r.at.Step - r.firstStep, Began: r.began, EpochEnds: r.atEpochEnd(), Ends: r.ended(),
	}
}
