package distributed

import (
	"fmt"
	"iter"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/dataset"
	"github.com/gomlx/gomlx/ml/train"

	"gonbatch/data"
	"gonbatch/distributed/sampler"
)

// LoaderOptions says how to cut a dataset into batches.
type LoaderOptions struct {
	// BatchSize is the number of examples in a training step, over all ranks and devices. It must
	// be divisible by their number.
	BatchSize int
	// Shuffle draws a new order for each epoch, the same on all ranks.
	Shuffle bool
	// Seed determines the order. All ranks must have the same.
	Seed uint64
}

// Loader yields this process's part of each batch. It is a GoMLX train.Dataset with one epoch per
// iteration. If the process has several devices, it is a train.DistributedDataset.
type Loader interface {
	train.Dataset
	// Steps returns the number of batches in an epoch. Examples that don't fill the last batch are
	// left out of that epoch.
	Steps() int
	// BatchSize returns the number of examples in a step, over all ranks and devices.
	BatchSize() int
	// Seek makes the next iteration begin at a step of an epoch, both counted from 0, so that a
	// training that resumes sees the batches that it would have seen. The iteration after it is the
	// whole next epoch.
	Seek(epoch, step int)
}

// Loader cuts a dataset into batches for training, and shards them over the ranks and their
// devices. Of a data.Epochs it yields the examples of each epoch.
func (w *World) Loader(ds data.Dataset, o LoaderOptions) (Loader, error) {
	o.BatchSize = w.forecaster.batchSize(o.BatchSize)
	s, err := sampler.New(sampler.Config{
		Len: ds.Len(), BatchSize: o.BatchSize, Shards: w.Size() * w.devices, Shuffle: o.Shuffle, Seed: o.Seed,
	})
	if err != nil {
		return nil, fmt.Errorf("distributed: load %s: %w", ds.Name(), err)
	}
	l := &loader{data: ds, sampler: s, firstShard: w.Rank() * w.devices, shards: w.devices, forecaster: w.forecaster}
	if w.devices == 1 {
		return l, nil
	}
	return w.overDevices(l)
}

// loader yields the batches of the shards of this process, one shard after the other.
type loader struct {
	data               data.Dataset
	sampler            *sampler.Sampler
	firstShard, shards int
	epoch, step        int // Where the next iteration begins.
	forecaster         *forecaster
}

func (l *loader) Name() string   { return l.data.Name() }
func (l *loader) Steps() int     { return l.sampler.Steps() }
func (l *loader) BatchSize() int { return l.sampler.BatchSize() }

func (l *loader) Seek(epoch, step int) { l.epoch, l.step = epoch, step }

// Iter implements train.Dataset: each call is the next epoch.
func (l *loader) Iter() iter.Seq2[train.Batch, error] {
	epoch, begin := l.epoch, l.step
	l.Seek(epoch+1, 0)
	return func(yield func(train.Batch, error) bool) {
		l.forecaster.begins(l)
		order := l.sampler.Epoch(epoch)
		for step := begin; step < l.sampler.Steps(); step++ {
			for shard := range l.shards {
				inputs, labels, err := data.EpochBatch(l.data, epoch, l.sampler.Shard(order, step, l.firstShard+shard))
				batch, err := loaded(l.data, inputs, labels, err)
				if !yield(batch, err) || err != nil {
					return
				}
			}
		}
	}
}

func loaded(ds data.Dataset, inputs, labels []*tensors.Tensor, err error) (train.Batch, error) {
	if err != nil {
		return train.Batch{}, fmt.Errorf("distributed: load a batch of %s: %w", ds.Name(), err)
	}
	return train.Batch{Inputs: inputs, Labels: labels}, nil
}

// deviceLoader puts each shard on its device.
type deviceLoader struct {
	*dataset.DistributedAccumulator
	source *loader
}

var _ train.DistributedDataset = (*deviceLoader)(nil)

func (l *deviceLoader) Name() string         { return l.source.Name() }
func (l *deviceLoader) Steps() int           { return l.source.Steps() }
func (l *deviceLoader) BatchSize() int       { return l.source.BatchSize() }
func (l *deviceLoader) Seek(epoch, step int) { l.source.Seek(epoch, step) }

func (w *World) overDevices(l *loader) (*deviceLoader, error) {
	accumulator, err := w.mesh.split(w.backend, l)
	if err != nil {
		return nil, fmt.Errorf("distributed: shard %s over %d devices: %w", l.Name(), w.devices, err)
	}
	return &deviceLoader{DistributedAccumulator: accumulator, source: l}, nil
}
