package distributed

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/distributed"
	"github.com/gomlx/gomlx/ml/train"

	"gonbatch/data"
	"gonbatch/data/load"
	"gonbatch/data/shuffle"
	"gonbatch/distributed/sampler"
)

// LoaderOptions says how to cut a dataset into batches.
type LoaderOptions struct {
	// BatchSize is the number of examples in a training step, over all ranks and devices. It must
	// be divisible by the number of devices of all ranks, divided by ModelParallel.
	BatchSize int
	// Limit is the maximum number of batches in an epoch. 0: no limit.
	Limit int
	// Shuffle draws a new order for each epoch, the same on all ranks.
	Shuffle bool
	// FillLast uses the examples that don't fill the last batch of an epoch: the batch is filled up
	// with the first examples of the epoch. All batches have the same size, so the training is the
	// same on any number of ranks, and needs no other program. Without it, they are left out.
	FillLast bool
	// Seed determines the order. All ranks must use the same seed.
	Seed uint64
	// Loading says how far the loader is ahead of the steps.
	Loading Loading
	// Epochs is the number of epochs of the training. At the end of each one but the last, the
	// loader continues with the batches of the next, whatever the program does in between, such as
	// a validation. Such a loader must be closed. 0: unknown; the end of an iteration ends the
	// loading.
	Epochs int
	// ModelParallel is the number of devices that have the same part of a batch, because they have
	// parts of the weights: see Division. 0: one.
	ModelParallel int
	// Observe, if it is not nil, is called when a phase of the loading of a batch ends: LoadPhase
	// or TransferPhase, with the time at which it began. Several goroutines call it at once.
	Observe func(phase string, began time.Time)
	// Check, if it is not nil, is called with each batch of this rank, by the goroutine that has
	// loaded it. Its error is one of the iteration.
	Check load.Check
}

// The phases of the loading of a batch: in memory, and onto the devices.
const (
	LoadPhase     = "load"
	TransferPhase = "transfer"
)

// observe tells of a phase that has ended, and returns the time.
func (o LoaderOptions) observe(phase string, began time.Time) time.Time {
	if o.Observe != nil {
		o.Observe(phase, began)
	}
	return time.Now()
}

// Loader yields this process's part of each batch, and loads the next ones meanwhile. It is a GoMLX
// train.Dataset with one epoch per iteration. If the process has several devices, it is a
// train.DistributedDataset. An iteration that fails because of an example yields a *load.Error.
type Loader interface {
	train.Dataset
	// Steps returns the number of batches in an epoch.
	Steps() int
	// BatchSize returns the number of examples in a step, over all ranks and devices.
	BatchSize() int
	// Seek makes the next iteration begin at a step of an epoch, both counted from 0, so that a
	// resumed training sees the batches that it would have seen without the interruption. The
	// iteration after that is the whole next epoch.
	Seek(epoch, step int)
	// Position returns where this rank is in a stream, after the batch that was yielded last; nil
	// if the dataset is not a stream. Resume is like Seek, and takes the positions of all ranks,
	// because a stream can't be read from any other place. Without positions, it is read from its
	// beginning.
	Position() *StreamPosition
	Resume(epoch, step int, at *StreamPosition) error
	// Close waits for the batches that are being loaded, and drops those that were not used.
	Close()
}

// Loader cuts a dataset into batches for training, and shards them over the ranks and their
// devices. If the dataset is a data.Epochs, each iteration yields the examples of its epoch.
func (w *World) Loader(ds data.Dataset, o LoaderOptions) (Loader, error) {
	o.BatchSize = w.forecaster.batchSize(o.BatchSize)
	if o.ModelParallel <= 1 {
		if err := w.FitDevices(o.BatchSize); err != nil {
			return nil, err
		}
	}
	if s, ok := ds.(*data.Streamed); ok {
		return w.streamLoader(s, o)
	}
	m, err := w.meshFor(o.ModelParallel)
	if err != nil {
		return nil, fmt.Errorf("distributed: load %s: %w", ds.Name(), err)
	}
	s, err := sampler.New(sampler.Config{
		Len: ds.Len(), BatchSize: o.BatchSize, Shards: w.rows(o.ModelParallel), Shuffle: o.Shuffle, FillLast: o.FillLast, Seed: o.Seed,
	})
	if err := errors.Join(w.explainRows(err, o, 0), o.check()); err != nil {
		return nil, fmt.Errorf("distributed: load %s: %w", ds.Name(), err)
	}
	w.busy.Store(true)
	w.sayOnce(data.Describe(ds))
	if w.devices == 1 {
		return hostLoader{newLoader(w, ds, s, o, w.onDevice), w}, nil
	}
	return deviceLoader{newLoader(w, ds, s, o, w.sharded(m)), w}, nil
}

func (o LoaderOptions) check() error {
	if o.Limit < 0 || o.Epochs < 0 {
		return fmt.Errorf("a limit of %d batches, and %d epochs: they can't be negative", o.Limit, o.Epochs)
	}
	return o.Loading.check()
}

// source yields batches that are on the devices.
type source[B batch] interface {
	Name() string
	BatchSize() int
	Steps() int
	Seek(epoch, step int)
	Position() *StreamPosition
	Resume(epoch, step int, at *StreamPosition) error
	Close()
	// iterate returns the rest of an epoch: each call is the next one.
	iterate() iter.Seq2[B, error]
}

// hostLoader loads for one device.
type hostLoader struct {
	source[train.Batch]
	world *World
}

func (l hostLoader) Iter() iter.Seq2[train.Batch, error] { return warnUnaveraged(l.world, l.iterate()) }

// deviceLoader loads for several devices.
type deviceLoader struct {
	source[train.DistributedBatch]
	world *World
}

var _ train.DistributedDataset = deviceLoader{}

func (l deviceLoader) Strategy() distributed.Strategy        { return distributed.AutoSharding }
func (l deviceLoader) DeviceAssignment() []compute.DeviceNum { return l.world.assignment() }

func (l deviceLoader) DistributedIter() iter.Seq2[train.DistributedBatch, error] {
	return warnUnaveraged(l.world, l.iterate())
}

// Iter implements train.Dataset.
func (l deviceLoader) Iter() iter.Seq2[train.Batch, error] {
	return func(yield func(train.Batch, error) bool) {
		yield(train.Batch{}, fmt.Errorf("distributed: load %s: its batches are for %d devices: use DistributedIter, or World.TrainSteps", l.Name(), l.world.devices))
	}
}

// warnUnaveraged warns after an epoch in which several ranks have trained, each for itself.
func warnUnaveraged[B batch](w *World, batches iter.Seq2[B, error]) iter.Seq2[B, error] {
	if w.Size() == 1 {
		return batches
	}
	return func(yield func(B, error) bool) {
		n := 0
		for batch, err := range batches {
			n++
			if !yield(batch, err) {
				break
			}
		}
		if n > 1 && !w.averages.Load() {
			w.warnOnce("each rank has used its own part of the batches, and no gradients have been averaged: if this trains a model, each rank has another one; wrap the optimizer in world.Optimizer, or call world.AverageGradients")
		}
	}
}

// loader yields batches of the examples of this process.
type loader[B batch] struct {
	world   *World
	data    data.Dataset
	sampler *sampler.Sampler
	options LoaderOptions
	place   placement[B]
	next    int     // The batch at which the next iteration begins, counted over all epochs.
	kept    *run[B] // Of the last iteration, if it continues with the next epoch.
}

// run is the loading of a range of batches, counted over all epochs.
type run[B batch] struct {
	*load.Queue[B]
	next, end int
}

func newLoader[B batch](w *World, ds data.Dataset, s *sampler.Sampler, o LoaderOptions, place placement[B]) *loader[B] {
	return &loader[B]{world: w, data: ds, sampler: s, options: o, place: place}
}

func (l *loader[B]) Name() string   { return l.data.Name() }
func (l *loader[B]) BatchSize() int { return l.sampler.BatchSize() }

func (l *loader[B]) Steps() int {
	if l.options.Limit > 0 {
		return min(l.sampler.Steps(), l.options.Limit)
	}
	return l.sampler.Steps()
}

func (l *loader[B]) Seek(epoch, step int) { l.next = epoch*l.Steps() + step }

// Position implements Loader.
func (l *loader[B]) Position() *StreamPosition { return nil }

// Resume implements Loader.
func (l *loader[B]) Resume(epoch, step int, _ *StreamPosition) error {
	l.Seek(epoch, step)
	return nil
}

func (l *loader[B]) Close() {
	if l.kept != nil {
		l.kept.Close()
		l.kept = nil
	}
}

func (l *loader[B]) iterate() iter.Seq2[B, error] {
	begin := l.next
	end := (begin/l.Steps() + 1) * l.Steps()
	l.next = end
	return func(yield func(B, error) bool) {
		l.world.forecaster.begins(l.BatchSize(), l.data.Len())
		if l.options.Epochs == 0 {
			run := l.start(begin, end)
			defer run.Close()
			run.yield(end, yield)
			return
		}
		if l.kept == nil || l.kept.next != begin || l.kept.end < end {
			l.Close()
			l.kept = l.start(begin, max(end, l.lastOf(l.options.Epochs)))
		}
		if !l.kept.yield(end, yield) {
			l.Close()
		}
	}
}

// yield yields the batches up to the end of an epoch, or the first error, and reports whether there
// was none.
func (r *run[B]) yield(end int, yield func(B, error) bool) bool {
	for r.next < end {
		value, _, err := r.Next()
		r.next++
		if more := yield(value, err); err != nil || !more {
			return err == nil
		}
	}
	return true
}

// lastOf returns the number of batches in this many epochs.
func (l *loader[B]) lastOf(epochs int) int {
	if epochs > math.MaxInt/l.Steps() {
		return math.MaxInt
	}
	return epochs * l.Steps()
}

// start begins to load a range of batches.
func (l *loader[B]) start(begin, end int) *run[B] {
	var order shuffle.Order
	ordered, batch := -1, begin
	return &run[B]{next: begin, end: end, Queue: load.NewQueue(loadOptions[B](l.world, l.options.Loading), func() (func() (B, error), bool) {
		if batch >= end {
			return nil, false
		}
		epoch, step := batch/l.Steps(), batch%l.Steps()
		if epoch != ordered {
			order, ordered = l.sampler.Epoch(epoch), epoch
		}
		batch++
		rows := l.world.rows(l.options.ModelParallel) / l.world.Size()
		examples := l.sampler.Shards(order, step, l.world.Rank()*rows, rows)
		return func() (B, error) { return l.load(epoch, examples) }, true
	})}
}

func (l *loader[B]) load(epoch int, examples []int) (placed B, err error) {
	began := time.Now()
	inputs, labels, err := load.EpochBatch(l.data, epoch, examples, l.options.Check)
	if err == nil {
		began = l.options.observe(LoadPhase, began)
		placed, err = l.place(train.Batch{Inputs: inputs, Labels: labels})
		l.options.observe(TransferPhase, began)
	}
	if err != nil {
		return placed, fmt.Errorf("distributed: %w", err)
	}
	return placed, nil
}
