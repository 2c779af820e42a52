package checkpoint_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"gonbatch/checkpoint"
)

// large returns a store of 500 MB, like that of 20 layers with two moments each.
func large(b *testing.B) (*model.Store, int64) {
	b.Helper()
	store := model.NewStore()
	for layer := range 20 {
		for _, scope := range []string{"", "/AdamOptimizer"} {
			for _, name := range []string{"weights", "weights_2nd_moment"} {
				t := tensors.FromShape(shapes.Make(dtypes.Float32, 1250, 1250))
				err := tensors.MutableFlatData(t, func(data []float32) {
					for i := range data {
						data[i] = float32(i * (layer + 1))
					}
				})
				if err != nil {
					b.Fatal(err)
				}
				if _, err := store.CreateVariable(fmt.Sprintf("%s/layer_%d/%s", scope, layer, name), t); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
	return store, store.ByteSize()
}

func BenchmarkTake(b *testing.B) {
	store, size := large(b)
	b.SetBytes(size)
	for b.Loop() {
		if _, err := checkpoint.Take(store, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkWriterTake takes snapshots into reused memory, as in all but the first two calls of
// Take.
func BenchmarkWriterTake(b *testing.B) {
	store, size := large(b)
	dir, err := checkpoint.Open(b.TempDir(), checkpoint.Options{Keep: 1})
	if err != nil {
		b.Fatal(err)
	}
	w := checkpoint.NewWriter(dir)
	s, err := w.Take(store, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(size)
	for b.Loop() {
		b.StopTimer()
		if err := errors.Join(w.Save(s), w.Wait()); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		if s, err = w.Take(store, nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSave(b *testing.B) {
	store, size := large(b)
	s, err := checkpoint.Take(store, nil)
	if err != nil {
		b.Fatal(err)
	}
	dir, err := checkpoint.Open(b.TempDir(), checkpoint.Options{Keep: 1})
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(size)
	for b.Loop() {
		s.Step++
		if err := dir.Save(s); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRead(b *testing.B) {
	store, size := large(b)
	s, err := checkpoint.Take(store, nil)
	if err != nil {
		b.Fatal(err)
	}
	dir, err := checkpoint.Open(b.TempDir(), checkpoint.Options{})
	if err != nil {
		b.Fatal(err)
	}
	if err := dir.Save(s); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(size)
	for b.Loop() {
		if _, err := dir.Latest(nil); err != nil {
			b.Fatal(err)
		}
	}
}
