package distributed_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/core/tensors/dtensor"
	"github.com/gomlx/gomlx/ml/train"

	"gonbatch/distributed"
	"gonbatch/distributed/ranktest"
	"gonbatch/distributed/sampler"
)

// numbers is a dataset whose examples are their numbers and the epoch. It counts the calls under
// way.
type numbers struct {
	n      int
	inside *atomic.Int32
}

func (d numbers) Name() string { return "numbers" }
func (d numbers) Len() int     { return d.n }

func (d numbers) Batch(indices []int) (inputs, labels []*tensors.Tensor, err error) {
	return d.EpochBatch(-1, indices)
}

func (d numbers) EpochBatch(epoch int, indices []int) (inputs, labels []*tensors.Tensor, err error) {
	d.inside.Add(1)
	defer d.inside.Add(-1)
	values, epochs := make([]int32, len(indices)), make([]int32, len(indices))
	for i, index := range indices {
		values[i], epochs[i] = int32(index), int32(epoch)
	}
	return []*tensors.Tensor{tensors.FromFlatDataAndDimensions(values, len(values))},
		[]*tensors.Tensor{tensors.FromFlatDataAndDimensions(epochs, len(values), 1)}, nil
}

// loaded iterates once, over at most this many batches. It returns the examples of each and its
// epoch.
func loaded(t *testing.T, l distributed.Loader, most int) (all []string) {
	t.Helper()
	add := func(inputs, labels []int32) bool {
		if len(labels) != len(inputs) || slices.Max(labels) != slices.Min(labels) {
			t.Fatalf("examples %v of the epochs %v", inputs, labels)
		}
		all = append(all, fmt.Sprint(labels[0], inputs))
		return len(all) < most
	}
	many, ok := l.(train.DistributedDataset)
	if !ok {
		for batch, err := range l.Iter() {
			if err != nil {
				t.Fatal(err)
			}
			if !add(tensors.MustCopyFlatData[int32](batch.Inputs[0]), tensors.MustCopyFlatData[int32](batch.Labels[0])) {
				break
			}
		}
		return all
	}
	for batch, err := range many.DistributedIter() {
		if err != nil {
			t.Fatal(err)
		}
		if !add(joined(batch.Inputs[0]), joined(batch.Labels[0])) {
			break
		}
	}
	return all
}

// joined returns the values of all devices, in their order.
func joined(all *dtensor.Tensor) (values []int32) {
	for _, shard := range all.Shards() {
		values = append(values, tensors.MustCopyFlatData[int32](shard)...)
	}
	return values
}

// TestLoaderAgainstLoop: whatever its options, and wherever iterations begin and end, a loader
// yields the batches that a loop over the sampler does, on each rank and device, and loads nothing
// after the end.
func TestLoaderAgainstLoop(t *testing.T) {
	if ranktest.InRank() {
		loaderAgainstLoop(t)
		return
	}
	for ranks, env := range map[int]string{1: "GONBATCH_DEVICES=2", 2: "GONBATCH_DEVICES=1"} {
		if out, err := ranktest.Start(t, ranktest.Torchrun, ranks, []string{env}); err != nil {
			t.Errorf("%d ranks, %s: %v\n%s", ranks, env, err, out)
		}
	}
}

func loaderAgainstLoop(t *testing.T) {
	w := initWorld(t)
	rng := rand.New(rand.NewPCG(7, uint64(w.Rank())))
	shards := w.Size() * w.Devices()
	for range 60 {
		o := distributed.LoaderOptions{
			BatchSize: shards * (1 + rng.IntN(3)), Limit: rng.IntN(4), Shuffle: rng.IntN(2) == 0, FillLast: rng.IntN(2) == 0, Seed: rng.Uint64N(5), Epochs: rng.IntN(3),
			Loading: distributed.Loading{Workers: rng.IntN(5) - 1, Prefetch: rng.IntN(5)},
		}
		ds := numbers{o.BatchSize + rng.IntN(6*shards), new(atomic.Int32)}
		s, err := sampler.New(sampler.Config{Len: ds.n, BatchSize: o.BatchSize, Shards: w.Size(), Shuffle: o.Shuffle, FillLast: o.FillLast, Seed: o.Seed})
		if err != nil {
			t.Fatal(err)
		}
		l, err := w.Loader(ds, o)
		if err != nil {
			t.Fatal(err)
		}
		steps := s.Steps()
		if o.Limit > 0 {
			steps = min(steps, o.Limit)
		}
		epoch, step := 0, 0
		for range 6 {
			if rng.IntN(3) == 0 {
				epoch, step = rng.IntN(4), rng.IntN(steps)
				l.Seek(epoch, step)
			}
			var want []string
			most := 1 + rng.IntN(2*steps)
			for ; step < steps && len(want) < most; step++ {
				want = append(want, fmt.Sprint(epoch, s.Shards(s.Epoch(epoch), step, w.Rank(), 1)))
			}
			if got := loaded(t, l, most); !slices.Equal(got, want) || l.Steps() != steps {
				t.Fatalf("%+v, %d examples: got %v, want %v", o, ds.n, got, want)
			}
			if o.Epochs == 0 && ds.inside.Load() != 0 {
				t.Errorf("%+v: a batch is loaded after the end of the iteration", o)
			}
			epoch, step = epoch+1, 0
		}
		l.Close()
		if ds.inside.Load() != 0 {
			t.Errorf("%+v: a batch is loaded after Close", o)
		}
	}
	for want, o := range map[string]distributed.LoaderOptions{
		"-2 workers: there must be at least 1":               {BatchSize: shards, Loading: distributed.Loading{Workers: -2}},
		"-1 batches to prefetch: there must be at least 1":   {BatchSize: shards, Loading: distributed.Loading{Prefetch: -1}},
		"a limit of -1 batches, and 0 epochs: they can't be": {BatchSize: shards, Limit: -1},
	} {
		if _, err := w.Loader(ranktest.Blobs(8), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
