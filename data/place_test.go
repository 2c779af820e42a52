package data_test

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/data"
)

// squares is a stream of images of 4x4 pixels, in parts of these lengths. All values of an image
// are its number, and so is its label.
type squares []int

func (s squares) Name() string             { return "squares" }
func (s squares) Parts() int               { return len(s) }
func (s squares) PartName(part int) string { return fmt.Sprintf("%d.tar", part) }

func (s squares) Read(part, _, skip int) iter.Seq2[any, error] {
	return func(yield func(any, error) bool) {
		for i := skip; i < s[part]; i++ {
			if !yield(100*part+i, nil) {
				return
			}
		}
	}
}

func (s squares) Batch(examples []any) (inputs, labels []*tensors.Tensor, err error) {
	var pixels []float32
	var numbers []int32
	for _, number := range examples {
		pixels = append(pixels, slices.Repeat([]float32{float32(number.(int))}, 16)...)
		numbers = append(numbers, int32(number.(int)))
	}
	image, label := tensors.FromFlatDataAndDimensions(pixels, len(examples), 4, 4, 1), tensors.FromFlatDataAndDimensions(numbers, len(examples), 1)
	return []*tensors.Tensor{image}, []*tensors.Tensor{label}, nil
}

// draw adds a random number to each image, the same to all of its pixels.
func draw(im data.Image, random *rand.Rand) error {
	number := random.Float32()
	for i := range im.Pixels {
		im.Pixels[i] += number
	}
	return nil
}

// streamOf returns the stream of a dataset for Fit.
func streamOf(t *testing.T, s data.Stream, change func(data.Dataset) data.Dataset) data.Stream {
	t.Helper()
	ds, err := data.FromStream(s, data.StreamConfig{Examples: 10})
	if err != nil {
		t.Fatal(err)
	}
	return change(ds).(*data.Streamed).Stream
}

// drawn returns what draw adds to the images of a part in a pass, which are read after skipping the
// first ones, in batches of n.
func drawn(t *testing.T, s data.Stream, part, pass, skip, n int) (all []float32) {
	t.Helper()
	var examples []any
	for example, err := range s.Read(part, pass, skip) {
		if err != nil {
			t.Fatal(err)
		}
		examples = append(examples, example)
	}
	for batch := range slices.Chunk(examples, n) {
		x, y, err := s.Batch(batch)
		if err != nil {
			t.Fatal(err)
		}
		pixels := tensors.MustCopyFlatData[float32](x[0])
		for i, number := range tensors.MustCopyFlatData[int32](y[0]) {
			all = append(all, pixels[i*len(pixels)/len(batch)]-float32(number))
		}
	}
	return all
}

// TestAugmentStream: the random numbers of an example depend on the seed, its part, its number and
// the pass, and on nothing else.
func TestAugmentStream(t *testing.T) {
	augmented := func(seed uint64) data.Stream {
		return streamOf(t, squares{30, 0, 30}, func(ds data.Dataset) data.Dataset { return data.Augment(ds, seed, draw) })
	}
	s := augmented(4)
	seen := map[float32]bool{}
	for _, part := range []int{0, 2} {
		for pass := range 3 {
			whole := drawn(t, s, part, pass, 0, 30)
			for _, number := range whole {
				seen[number] = true
			}
			for _, skip := range []int{1, 17, 29, 30} {
				if rest := drawn(t, augmented(4), part, pass, skip, 7); !slices.Equal(rest, whole[skip:]) {
					t.Errorf("part %d, pass %d, after %d examples: %v, want %v", part, pass, skip, rest, whole[skip:])
				}
			}
			if slices.Equal(drawn(t, augmented(5), part, pass, 0, 30), whole) {
				t.Error("another seed changes nothing")
			}
		}
	}
	if len(seen) < 170 { // Of 180; two of them may be rounded to the same number.
		t.Errorf("only %d different numbers", len(seen))
	}
	if got := s.(data.NamedParts).PartName(2); got != "2.tar" || s.Name() != "squares" {
		t.Errorf("the part is %q of %s", got, s.Name())
	}
}

// TestAugmentUnnamedStream: a stream whose parts have no names has none after it is augmented.
func TestAugmentUnnamedStream(t *testing.T) {
	unnamed := struct{ data.Stream }{squares{1}}
	s := streamOf(t, unnamed, func(ds data.Dataset) data.Dataset { return data.Augment(ds, 1, draw) })
	if _, ok := s.(data.NamedParts); ok {
		t.Error("its parts have names")
	}
}

// TestResizeStream: images of a stream can be resized, cropped and augmented, in any order.
func TestResizeStream(t *testing.T) {
	s := streamOf(t, squares{9}, func(ds data.Dataset) data.Dataset {
		return data.CenterCrop(data.Augment(data.Resize(ds, 8, 6), 3, draw), 4, 5)
	})
	plain := streamOf(t, squares{9}, func(ds data.Dataset) data.Dataset { return data.Augment(ds, 3, draw) })
	if got, want := drawn(t, s, 0, 2, 3, 4), drawn(t, plain, 0, 2, 3, 4); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for example, err := range s.Read(0, 0, 0) {
		if err != nil {
			t.Fatal(err)
		}
		x, _, err := s.Batch([]any{example})
		if err != nil || !slices.Equal(x[0].Shape().Dimensions, []int{1, 4, 5, 1}) {
			t.Fatalf("got %v, %v", x, err)
		}
	}
}

// TestAugmentStreamRefuses: errors name the stream.
func TestAugmentStreamRefuses(t *testing.T) {
	for want, s := range map[string]data.Stream{
		"data: augment squares: RandomFlip: the probability must be from 0 to 1, got 2":  streamOf(t, squares{3}, func(ds data.Dataset) data.Dataset { return data.Augment(ds, 1, data.RandomFlip(2)) }),
		"data: crop squares: the images have 4x4 pixels, fewer than the 5x4 of the crop": streamOf(t, squares{3}, func(ds data.Dataset) data.Dataset { return data.CenterCrop(ds, 5, 4) }),
	} {
		for example, err := range s.Read(0, 0, 0) {
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := s.Batch([]any{example}); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
		}
	}
}

// twice is a stream that makes two images of each example.
type twice struct{ data.Stream }

func (s twice) Batch(examples []any) (inputs, labels []*tensors.Tensor, err error) {
	return s.Stream.Batch(slices.Concat(examples, examples))
}

// TestAugmentMoreImages: a batch with more images than examples is an error.
func TestAugmentMoreImages(t *testing.T) {
	s := streamOf(t, twice{squares{3}}, func(ds data.Dataset) data.Dataset { return data.Augment(ds, 1, draw) })
	for example, err := range s.Read(0, 0, 2) {
		if err != nil {
			t.Fatal(err)
		}
		want := "data: augment squares: its first input must have one image for each example: Batch returned 2 images for 1 example"
		if _, _, err := s.Batch([]any{example}); err == nil || err.Error() != want {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
