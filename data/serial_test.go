package data_test

import (
	"sync"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/data"
)

// alone is a dataset that counts its calls without a lock.
type alone struct {
	numbered
	calls, inside, most int
}

func (a *alone) EpochBatch(epoch int, indices []int) (inputs, labels []*tensors.Tensor, err error) {
	a.calls++
	a.inside++
	a.most = max(a.most, a.inside)
	defer func() { a.inside-- }()
	return a.numbered.EpochBatch(epoch, indices)
}

func (a *alone) Batch(indices []int) (inputs, labels []*tensors.Tensor, err error) {
	return a.EpochBatch(0, indices)
}

// TestSerial: only one goroutine at a time uses the dataset, even if its parts are used
// concurrently; a panic in one doesn't block the others.
func TestSerial(t *testing.T) {
	inner := &alone{numbered: 100}
	parts, err := data.SplitCounts(data.Serial(inner), 1, 50, 50)
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for k := range 50 {
				if i%2 == 0 {
					_, _, err := parts[i/2%2].Batch([]int{k})
					if err != nil {
						t.Error(err)
					}
					continue
				}
				inputs, _, err := data.EpochBatch(parts[i/2%2], 2, []int{k})
				if err != nil || tensors.MustCopyFlatData[int32](inputs[0])[0] < 2000 {
					t.Errorf("epoch 2: %v, %v", inputs, err)
				}
			}
		})
	}
	group.Wait()
	if inner.most != 1 || inner.calls != 8*50 {
		t.Errorf("%d of %d calls at once", inner.most, inner.calls)
	}
}
