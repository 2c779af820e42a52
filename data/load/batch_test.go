package load_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/data"
	"gonbatch/data/load"
)

// photos is a dataset of 100 examples. bad says what it does with one.
type photos struct {
	bad   func(index, batch int) error
	calls int
}

func (p *photos) Name() string { return "photos" }
func (p *photos) Len() int     { return 100 }

func (p *photos) Batch(indices []int) (inputs, labels []*tensors.Tensor, err error) {
	p.calls++
	values := make([]int32, len(indices))
	for i, index := range indices {
		if err := p.bad(index, len(indices)); err != nil {
			return nil, nil, err
		}
		values[i] = int32(index)
		indices[i] = -1 // It is the dataset's own.
	}
	return []*tensors.Tensor{tensors.FromFlatDataAndDimensions(values, len(values))}, nil, nil
}

var _ data.Dataset = (*photos)(nil)

var errTorn = errors.New("the file is torn")

// TestErrorNamesExample: the error has the example's number, whether the dataset fails or panics,
// or those of the batch, if no example fails alone.
func TestErrorNamesExample(t *testing.T) {
	alone := func(bad func() error) func(int, int) error {
		return func(index, _ int) error {
			if index == 42 {
				return bad()
			}
			return nil
		}
	}
	tests := []struct {
		name     string
		bad      func(index, batch int) error
		examples []int
		want     string
	}{
		{"an error", alone(func() error { return errTorn }), []int{42}, "load example 42 of photos: the file is torn"},
		{"a panic", alone(func() error { panic("what?") }), []int{42}, "load example 42 of photos: panic: what?"},
		{"a panic with an error", alone(func() error { panic(errTorn) }), []int{42}, "load example 42 of photos: panic: the file is torn"},
		{"an index", alone(func() error { var none []int; return fmt.Errorf("%d", none[len(none)]) }), []int{42}, "load example 42 of photos: panic: runtime error: index out of range [0] with length 0"},
		{"together", func(_, batch int) error {
			if batch > 1 {
				return errTorn
			}
			return nil
		}, []int{7, 8, 42, 1, 2, 3}, "load the batch of the 6 examples [7 8 42 1 2] ... of photos: the file is torn"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			batch := []int{7, 8, 42, 1, 2, 3}
			inputs, labels, err := load.Batch(&photos{bad: test.bad}, batch, nil)
			var failed *load.Error
			if inputs != nil || labels != nil || !errors.As(err, &failed) || !slices.Equal(failed.Examples, test.examples) || failed.Dataset != "photos" || err.Error() != test.want {
				t.Errorf("got %v", err)
			}
			if strings.Contains(test.name, "panic") != strings.Contains(fmt.Sprintf("%+v", failed.Err), "batch_test.go:") && test.name != "an index" {
				t.Errorf("the stack trace is %+v", failed.Err)
			}
			if strings.Contains(test.want, "torn") && !errors.Is(err, errTorn) {
				t.Errorf("%v is not the dataset's", err)
			}
		})
	}
}

// words is a stream. bad says what it does with an example.
type words struct {
	data.Stream
	bad func(word string, batch int) error
}

func (words) Name() string { return "words" }

func (w words) Batch(examples []any) (inputs, labels []*tensors.Tensor, err error) {
	lengths := make([]int32, len(examples))
	for i, word := range examples {
		if err := w.bad(word.(string), len(examples)); err != nil {
			return nil, nil, err
		}
		lengths[i], examples[i] = int32(len(word.(string))), nil // It is the stream's own.
	}
	return []*tensors.Tensor{tensors.FromFlatDataAndDimensions(lengths, len(lengths))}, nil, nil
}

// TestErrorNamesExampleOfStream: the error has the place of the example, whether the stream fails
// or panics, or that of the first one, if no example fails alone.
func TestErrorNamesExampleOfStream(t *testing.T) {
	for name, test := range map[string]struct {
		bad  func(word string, batch int) error
		want string
	}{
		"no error": {func(string, int) error { return nil }, ""},
		"an error": {func(word string, _ int) error {
			if word == "ccc" {
				return errTorn
			}
			return nil
		}, "decode word 2 of the stream words: the file is torn"},
		"a panic": {func(word string, _ int) error {
			if word == "bb" {
				panic(errTorn)
			}
			return nil
		}, "decode word 1 of the stream words: panic: the file is torn"},
		"together": {func(_ string, batch int) error {
			if batch > 1 {
				return errTorn
			}
			return nil
		}, "decode the batch of 4 examples that begins with word 0 of the stream words: the file is torn"},
	} {
		t.Run(name, func(t *testing.T) {
			inputs, labels, err := load.Examples(words{bad: test.bad}, []any{"a", "bb", "ccc", "dddd"}, func(i int) string { return fmt.Sprintf("word %d", i) }, nil)
			if test.want == "" {
				if err != nil || !slices.Equal(tensors.MustCopyFlatData[int32](inputs[0]), []int32{1, 2, 3, 4}) {
					t.Errorf("got %v, %v", inputs, err)
				}
				return
			}
			var failed *load.Error
			if inputs != nil || labels != nil || !errors.As(err, &failed) || err.Error() != test.want || !errors.Is(err, errTorn) {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}

// TestErrorOfHangingDataset: a dataset that has failed may hang when it is asked for one example
// after the other. The error comes nevertheless.
func TestErrorOfHangingDataset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs := make(chan struct{})
		ds := &photos{bad: func(_, batch int) error {
			if batch == 1 {
				<-hangs
			}
			return errTorn
		}}
		began := time.Now()
		_, _, err := load.EpochBatch(ds, 0, []int{1, 2}, nil)
		if err == nil || err.Error() != "load the batch of the 2 examples [1 2] of photos: the file is torn" || time.Since(began) > time.Minute {
			t.Errorf("got %v after %s", err, time.Since(began))
		}
		close(hangs)
	})
}

// TestBatchLeavesIndices: a dataset may change the list that it is given.
func TestBatchLeavesIndices(t *testing.T) {
	indices := []int{5, 3, 9}
	inputs, _, err := load.EpochBatch(&photos{bad: func(int, int) error { return nil }}, 0, indices, nil)
	if err != nil || !slices.Equal(indices, []int{5, 3, 9}) || !slices.Equal(tensors.MustCopyFlatData[int32](inputs[0]), []int32{5, 3, 9}) {
		t.Errorf("got %v of %v, %v", inputs, indices, err)
	}
}

// nothing returns no tensors.
type nothing struct{ photos }

func (nothing) Batch([]int) (inputs, labels []*tensors.Tensor, err error) {
	return []*tensors.Tensor{nil}, []*tensors.Tensor{nil}, nil
}

func TestBatchRefusesNil(t *testing.T) {
	if _, _, err := load.Batch(&nothing{}, []int{3}, nil); err == nil || err.Error() != "load example 3 of photos: Batch returned a nil tensor" {
		t.Errorf("got %v", err)
	}
}

// repeats returns one tensor several times, as the slices of inputs and labels too.
type repeats struct{ photos }

func (r *repeats) Batch(indices []int) (inputs, labels []*tensors.Tensor, err error) {
	inputs, _, err = r.photos.Batch(indices)
	inputs = append(inputs, inputs[0])
	return inputs, inputs, err
}

// TestBatchRepeatsTensor: each tensor of a batch can be freed on its own.
func TestBatchRepeatsTensor(t *testing.T) {
	inputs, labels, err := load.Batch(&repeats{photos{bad: func(int, int) error { return nil }}}, []int{3, 4}, nil)
	if err != nil || len(inputs) != 2 || len(labels) != 2 {
		t.Fatal(inputs, labels, err)
	}
	for _, one := range slices.Concat(inputs, labels) {
		if got := tensors.MustCopyFlatData[int32](one); !slices.Equal(got, []int32{3, 4}) {
			t.Errorf("got %v", got)
		}
		load.Finalize([]*tensors.Tensor{one})
	}
}

// keeps returns the same tensors each time.
type keeps struct {
	photos
	kept []*tensors.Tensor
}

func (k *keeps) Batch(indices []int) (inputs, labels []*tensors.Tensor, err error) {
	if k.kept == nil {
		k.kept, _, err = k.photos.Batch(indices)
	}
	return k.kept, nil, err
}

// TestBatchRefusesFreed: the error of a dataset that keeps its tensors says what to do.
func TestBatchRefusesFreed(t *testing.T) {
	ds := &keeps{photos: photos{bad: func(int, int) error { return nil }}}
	inputs, _, err := load.Batch(ds, []int{3}, nil)
	if err != nil {
		t.Fatal(err)
	}
	load.Finalize(inputs)
	if _, _, err := load.Batch(ds, []int{3}, nil); err == nil || !strings.Contains(err.Error(), "load example 3 of photos: Batch returned a tensor that was freed") || !strings.Contains(err.Error(), "new tensors") {
		t.Errorf("got %v", err)
	}
}

// skips leaves out the examples that it can't read.
type skips struct{ photos }

func (s *skips) Batch(indices []int) (inputs, labels []*tensors.Tensor, err error) {
	var values []int32
	for _, index := range indices {
		if index != 42 {
			values = append(values, int32(index))
		}
	}
	return []*tensors.Tensor{tensors.FromFlatDataAndDimensions(values, len(values))}, nil, nil
}

// TestBatchRefusesOtherCounts: without an example, predictions and metrics would be those of other
// examples.
func TestBatchRefusesOtherCounts(t *testing.T) {
	_, _, err := load.Batch(&skips{}, []int{3, 42, 5}, nil)
	if err == nil || err.Error() != "load example 42 of photos: Batch returned a tensor of shape (Int32)[0] for 1 example: its first axis must be the examples" {
		t.Errorf("got %v", err)
	}
}
