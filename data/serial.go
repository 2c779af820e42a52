package data

import (
	"sync"

	"github.com/gomlx/gomlx/core/tensors"
)

// Serial returns ds for concurrent use: it calls ds from one goroutine at a time. Wrap a dataset
// whose Batch can't be called concurrently, for example because it seeks in a file, before you
// split or augment it.
func Serial(ds Dataset) Dataset { return wrapped{ds, serial{new(sync.Mutex)}} }

// serial is shared by the parts of a narrowed dataset.
type serial struct{ mu *sync.Mutex }

func (serial) settings(Dataset) string { return "" }

func (s serial) batch(ds Dataset, epoch int, indices []int) (inputs, labels []*tensors.Tensor, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return batchOf(ds, epoch, indices)
}
