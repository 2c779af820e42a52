package distributed

import (
	"fmt"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/core/tensors/dtensor"
	"github.com/gomlx/gomlx/ml/train"

	"gonbatch/data/load"
)

// Loading says how batches are loaded ahead: in other goroutines, while the devices compute, in
// memory and onto the devices. Neither value changes which examples a batch has, or their order.
type Loading struct {
	// Workers is the number of batches that are loaded at once. 0: as many as the rank has cores,
	// at most 4. -1: none is loaded ahead; a step waits until its batch is loaded.
	Workers int
	// Prefetch is the number of batches that are loaded, or being loaded, ahead of the step. It is
	// at least Workers. 0: 2.
	Prefetch int
}

const (
	mostWorkers     = 4
	defaultPrefetch = 2
	// evalBytes limits the memory of the batches that an evaluation loads ahead: they are larger
	// than those of a training run.
	evalBytes = 512 << 20
)

// Loading replaces zeros with the defaults of this rank.
func (w *World) Loading(l Loading) Loading {
	if l.Workers == 0 {
		l.Workers = min(mostWorkers, len(w.cpus.list))
	}
	if l.Prefetch == 0 {
		l.Prefetch = defaultPrefetch
	}
	l.Prefetch = max(l.Prefetch, l.Workers)
	return l
}

func (l Loading) check() error {
	switch {
	case l.Workers < -1:
		return fmt.Errorf("%d workers: there must be at least 1, or -1 for none", l.Workers)
	case l.Prefetch < 0:
		return fmt.Errorf("%d batches to prefetch: there must be at least 1", l.Prefetch)
	}
	return nil
}

// loadOptions are those of a queue of batches.
func loadOptions[B batch](w *World, l Loading) load.Options[B] {
	l = w.Loading(l)
	return load.Options[B]{Workers: max(l.Workers, 0), Ahead: l.Prefetch, Size: sizeOf[B], Drop: func(b B) { _ = b.Finalize() }}
}

// batch is a train.Batch or a train.DistributedBatch.
type batch interface {
	train.Batch | train.DistributedBatch
	Finalize() error
}

// sizeOf returns the memory of a batch, over all devices of this process.
func sizeOf[B batch](b B) (size int64) {
	switch b := any(b).(type) {
	case train.Batch:
		for _, all := range [][]*tensors.Tensor{b.Inputs, b.Labels} {
			for _, t := range all {
				size += t.Shape().ByteSize()
			}
		}
	case train.DistributedBatch:
		for _, all := range [][]*dtensor.Tensor{b.Inputs, b.Labels} {
			for _, t := range all {
				size += t.Shape().ByteSize()
			}
		}
	}
	return size
}
