package data

import (
	"sync"

	"github.com/gomlx/gomlx/core/tensors"
)

// Serial returns ds for concurrent use: it calls ds from one goroutine at a time. Wrap a dataset
// whose Batch can't be called concurrently, for example because it seeks in a file, before you
// split or augment it.
func Serial(ds Dataset) Dataset { return serial{wrapped{ds}, new(sync.Mutex)} }

type serial struct {
	wrapped
	mu *sync.Mutex // Shared by the parts of a narrowed dataset.
}

var _ Epochs = serial{}

// Fingerprint implements Fingerprinted: the examples are the other dataset's.
func (s serial) Fingerprint() string { return Fingerprint(s.Dataset) }

func (s serial) Batch(indices []int) (inputs, labels []*tensors.Tensor, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Dataset.Batch(indices)
}

// EpochBatch implements Epochs.
func (s serial) EpochBatch(epoch int, indices []int) (inputs, labels []*tensors.Tensor, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return EpochBatch(s.Dataset, epoch, indices)
}
