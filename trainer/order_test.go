package trainer_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/distributed/ranktest"
	"gonbatch/trainer"
)

// recorded notes the examples that a training asks for.
type recorded struct {
	ranktest.Blobs
	seen *[]int
}

func (r recorded) Batch(indices []int) (inputs, labels []*tensors.Tensor, err error) {
	*r.seen = append(*r.seen, indices...)
	return r.Blobs.Batch(indices)
}

// TestOrder: shuffle and drop_last decide which examples an epoch has, and in which order.
func TestOrder(t *testing.T) {
	const n, size = 29, 12
	sorted := make([]int, n)
	for i := range sorted {
		sorted[i] = i
	}
	for _, shuffle := range []bool{true, false} {
		for _, drop := range []bool{true, false} {
			t.Run(fmt.Sprintf("shuffle %v, drop_last %v", shuffle, drop), func(t *testing.T) {
				var seen []int
				c := trainer.Config{MaxEpochs: 2, BatchSize: size, Shuffle: new(shuffle), DropLast: new(drop), Loader: trainer.LoaderConfig{Workers: -1}}
				tr, _ := newTrainer(t, c, blobTask(plainNet))
				if err := tr.Fit(t.Context(), recorded{n, &seen}, nil); err != nil {
					t.Fatal(err)
				}
				each, used := 24, 24
				if !drop {
					each, used = 36, n
				}
				if len(seen) != 2*each || tr.Step() != int64(2*each/size) {
					t.Fatalf("%d examples in %d steps, want %d", len(seen), tr.Step(), 2*each)
				}
				first, second := seen[:each], seen[each:]
				for _, epoch := range [][]int{first, second} {
					if !slices.Equal(epoch[used:], epoch[:each-used]) {
						t.Errorf("the last batch is filled up with %v, the epoch begins with %v", epoch[used:], epoch[:each-used])
					}
					if shuffle == slices.Equal(epoch[:used], sorted[:used]) {
						t.Errorf("the order is %v", epoch)
					}
				}
				if shuffle == slices.Equal(first, second) {
					t.Errorf("the epochs have the orders %v and %v", first, second)
				}
			})
		}
	}
}

// TestResumeWithAllExamples: a training that uses all examples, in order, resumes within the last
// batches of an epoch as if it had never stopped.
func TestResumeWithAllExamples(t *testing.T) {
	for _, shuffle := range []bool{true, false} {
		c := trainer.Config{MaxEpochs: 3, BatchSize: 12, AccumulateGradBatches: 2, Seed: 3, Shuffle: new(shuffle), DropLast: new(false), Checkpoint: trainer.CheckpointConfig{Off: true}}
		want, _ := newTrainer(t, c, blobTask(smallNet))
		if err := want.Fit(t.Context(), ranktest.Blobs(145), nil); err != nil {
			t.Fatal(err)
		}
		if want.Step() != 21 {
			t.Errorf("%d steps, want 3 times 7", want.Step())
		}
		c.Checkpoint = trainer.CheckpointConfig{EverySteps: 2, Dir: t.TempDir()}
		for _, kill := range []int64{7, 13, 15} {
			tr, _ := newTrainer(t, c, blobTask(smallNet), killAt(kill))
			if err := tr.Fit(t.Context(), ranktest.Blobs(145), nil); !errors.Is(err, errKilled) {
				t.Fatal(err)
			}
		}
		got, _ := newTrainer(t, c, blobTask(smallNet))
		if err := got.Fit(t.Context(), ranktest.Blobs(145), nil); err != nil {
			t.Fatal(err)
		}
		compareWeights(t, weights(t, got.Store()), weights(t, want.Store()))
	}
}
