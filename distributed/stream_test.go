package distributed_test

import (
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/data"
	"gonbatch/distributed"
)

// counted is an endless stream in that many parts. Its examples are a part's number and a count.
type counted int

func (n counted) Name() string { return "numbers" }
func (n counted) Parts() int   { return int(n) }

func (n counted) Read(part, _, skip int) iter.Seq2[any, error] {
	return func(yield func(any, error) bool) {
		for i := skip; yield(float32(1000*part+i), nil); i++ {
			continue
		}
	}
}

func (n counted) Batch(examples []any) (inputs, labels []*tensors.Tensor, err error) {
	flat := make([]float32, len(examples))
	for i, example := range examples {
		flat[i] = example.(float32)
	}
	return []*tensors.Tensor{tensors.FromFlatDataAndDimensions(flat, len(flat))}, nil, nil
}

// loaderOf returns a loader of batches of 4 examples, 3 in an epoch.
func loaderOf(t *testing.T, w *distributed.World, parts int, c data.StreamConfig, o distributed.LoaderOptions) distributed.Loader {
	t.Helper()
	c.Examples = 14
	ds, err := data.FromStream(counted(parts), c)
	if err != nil {
		t.Fatal(err)
	}
	o.BatchSize = 4
	l, err := w.Loader(ds, o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// iteration returns the values of the batches of an iteration.
func iteration(t *testing.T, l distributed.Loader, most int) (all [][]float32) {
	t.Helper()
	for batch, err := range l.Iter() {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, tensors.MustCopyFlatData[float32](batch.Inputs[0]))
		if err := batch.Finalize(); err != nil {
			t.Fatal(err)
		}
		if len(all) == most {
			break
		}
	}
	return all
}

// TestStreamInLanes: without shuffling, each lane has the examples of its parts in order. The next
// epoch goes on where the one before ended, also after an iteration that ended early.
func TestStreamInLanes(t *testing.T) {
	w := initWorld(t)
	for _, o := range []distributed.LoaderOptions{{}, {Epochs: 3}, {Epochs: 3, Loading: distributed.Loading{Workers: -1}}, {Epochs: 3, Loading: distributed.Loading{Workers: 3, Prefetch: 9}}} {
		l := loaderOf(t, w, 2, data.StreamConfig{}, o)
		if l.Steps() != 3 || l.BatchSize() != 4 || l.Name() != "numbers" {
			t.Errorf("%s: %d steps of %d", l.Name(), l.Steps(), l.BatchSize())
		}
		got := fmt.Sprint(iteration(t, l, 3), iteration(t, l, 1))
		l.Seek(1, 1)
		got += fmt.Sprint(iteration(t, l, 3))
		at := l.Position()
		l.Close()
		want := "[[0 1 1000 1001] [2 3 1002 1003] [4 5 1004 1005]] [[6 7 1006 1007]][[8 9 1008 1009] [10 11 1010 1011]]"
		if got != want {
			t.Errorf("%+v: got %s, want %s", o, got, want)
		}
		other := loaderOf(t, w, 2, data.StreamConfig{}, o)
		if err := other.Resume(2, 0, at); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(iteration(t, other, 3)[0]); got != "[12 13 1012 1013]" {
			t.Errorf("%+v: resumes with %s", o, got)
		}
		other.Close()
	}
}

// TestLanes: the default number of lanes is the largest that fits.
func TestLanes(t *testing.T) {
	w := initWorld(t)
	for _, tt := range []struct{ parts, lanes, want int }{{1, 0, 1}, {2, 0, 2}, {3, 0, 2}, {4, 0, 4}, {9, 0, 4}, {9, 2, 2}, {1, 4, 4}} {
		l := loaderOf(t, w, tt.parts, data.StreamConfig{Lanes: tt.lanes}, distributed.LoaderOptions{})
		if got := l.Position().Lanes; got != tt.want {
			t.Errorf("%+v: %d lanes", tt, got)
		}
	}
}

// TestStreamSeek: a stream can't be read from any place.
func TestStreamSeek(t *testing.T) {
	w := initWorld(t)
	l := loaderOf(t, w, 2, data.StreamConfig{}, distributed.LoaderOptions{Shuffle: true})
	l.Seek(0, 2)
	for _, err := range l.Iter() {
		if err == nil || !strings.Contains(err.Error(), "the stream numbers is at batch 0, and can't go to batch 2") {
			t.Errorf("got %v", err)
		}
	}
	if err := l.Resume(0, 2, &distributed.StreamPosition{Lanes: 2, Block: 5000, At: l.Position().At}); err != nil {
		t.Errorf("without positions: %v", err)
	}
}
