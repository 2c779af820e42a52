package pjrt_test

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"

	"gonbatch/distributed/pjrt"
)

// bitStream draws raw bits in a compiled program: all 32 of each word, which GoMLX's functions
// don't show.
type bitStream struct {
	backend compute.Backend
	program compute.Executable
	words   int
	state   []uint64 // A key and a counter.
}

// newBitStream returns a stream that draws that many words at a time.
func newBitStream(t *testing.T, backend compute.Backend, words int, state ...uint64) *bitStream {
	t.Helper()
	builder := backend.Builder(fmt.Sprintf("%d random words", words))
	main := builder.Main()
	parameter, err := main.Parameter("state", compute.RNGStateShape, nil)
	if err != nil {
		t.Fatal(err)
	}
	next, bits, err := main.RNGBitGenerator(parameter, shapes.Make(dtypes.Uint32, words))
	if err == nil {
		err = main.Return([]compute.Value{next, bits}, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	program, err := builder.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return &bitStream{backend, program, words, state}
}

// next draws the next words, and moves the state.
func (s *bitStream) next(t *testing.T) []uint32 {
	t.Helper()
	state, err := s.backend.BufferFromFlatData(0, s.state, compute.RNGStateShape)
	if err != nil {
		t.Fatal(err)
	}
	outs, err := s.program.Execute([]compute.Buffer{state}, []bool{false}, 0)
	if err != nil {
		t.Fatal(err)
	}
	next, bits := make([]uint64, 3), make([]uint32, s.words)
	if err := errors.Join(outs[0].ToFlatData(next), outs[1].ToFlatData(bits)); err != nil {
		t.Fatal(err)
	}
	s.state = next
	for _, buffer := range append(outs, state) {
		if err := buffer.Finalize(); err != nil {
			t.Fatal(err)
		}
	}
	return bits
}

// TestPhiloxVectors compares the bits with the known answers of Random123, the authors' own library
// (tests/kat_vectors, philox4x32 with 10 rounds; Salmon et al., 2011).
func TestPhiloxVectors(t *testing.T) {
	backend := openGenerator(t)
	for _, vector := range []struct {
		counter [4]uint32
		key     [2]uint32
		want    []uint32
	}{
		{[4]uint32{}, [2]uint32{}, []uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{[4]uint32{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, [2]uint32{0xffffffff, 0xffffffff}, []uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{[4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, [2]uint32{0xa4093822, 0x299f31d0}, []uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
	} {
		state := []uint64{join(vector.key[0], vector.key[1]), join(vector.counter[0], vector.counter[1]), join(vector.counter[2], vector.counter[3])}
		for name, on := range map[string]bool{"XLA": false, "ours": true} {
			pjrt.SetGenerator(on)
			if got := newBitStream(t, backend, 4, state...).next(t); !slices.Equal(got, vector.want) {
				t.Errorf("%s: the state %x gives %x, want %x", name, state, got, vector.want)
			}
		}
	}
}

func join(low, high uint32) uint64 { return uint64(low) | uint64(high)<<32 }

// TestStepsDontOverlap: what a step draws follows what the step before it drew, without a word
// twice or left out, whatever their numbers: even where the counter's low half overflows.
func TestStepsDontOverlap(t *testing.T) {
	backend := openGenerator(t)
	state := []uint64{5, ^uint64(0) - 700, 9}
	const all = 8000
	whole := newBitStream(t, backend, all, state...).next(t)
	seen := map[[4]uint32]bool{}
	for block := range slices.Chunk(whole, 4) {
		seen[[4]uint32(block)] = true
	}
	if len(seen) != all/4 {
		t.Errorf("%d different blocks, want %d", len(seen), all/4)
	}
	for _, words := range []int{1, 4, 6, 127, 128, 129, 1000} {
		stream, at := newBitStream(t, backend, words, state...), 0
		for at+words <= all {
			if got := stream.next(t); !slices.Equal(got, whole[at:at+words]) {
				t.Fatalf("steps of %d words: those from word %d are not of the stream", words, at)
			}
			at += (words + 3) / 4 * 4 // The rest of the last block is not used.
		}
	}
}

// TestGeneratorStream: streams with neighboring keys and the same counter, as ranks might have in
// the worst case, have no word in common at the same place. If the variable GENERATOR_STREAM names
// a pipe, the test writes the words of 4 such streams to it in turn, until nobody reads them: for a
// suite that tests generators.
func TestGeneratorStream(t *testing.T) {
	backend := openGenerator(t)
	var ranks []*bitStream
	for rank := range uint64(4) {
		ranks = append(ranks, newBitStream(t, backend, 1<<18, rank, 0, 0))
	}
	path := os.Getenv("GENERATOR_STREAM")
	if path != "" {
		writeStreams(t, path, ranks)
		return
	}
	first := ranks[0].next(t)
	for rank, stream := range ranks[1:] {
		same := 0
		for i, word := range stream.next(t) {
			if word == first[i] {
				same++
			}
		}
		if same > 3 { // 0.00006 are expected.
			t.Errorf("the streams of keys 0 and %d have %d of %d words in common", rank+1, same, len(first))
		}
	}
}

// writeStreams writes words until the pipe is closed.
func writeStreams(t *testing.T, path string, ranks []*bitStream) {
	t.Helper()
	pipe, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	out := bufio.NewWriterSize(pipe, 1<<20)
	for {
		words := make([][]uint32, len(ranks))
		for i, rank := range ranks {
			words[i] = rank.next(t)
		}
		row := make([]byte, 0, 4*len(ranks))
		for i := range words[0] {
			row = row[:0]
			for rank := range ranks {
				row = binary.LittleEndian.AppendUint32(row, words[rank][i])
			}
			if _, err := out.Write(row); errors.Is(err, syscall.EPIPE) {
				return
			} else if err != nil {
				t.Fatal(err)
			}
		}
	}
}
