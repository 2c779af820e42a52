package ranktest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// Comm is one rank's end of a transport. Packages mpi and tcp implement it.
type Comm interface {
	Rank() int
	Size() int
	AllReduce(values []float64) error
	Broadcast(data []byte, root int) error
	AllGather(data []byte) ([][]byte, error)
	Barrier() error
	Close() error
}

// CheckTransport tests the contract of the transports. Every rank calls it with its own Comm, which
// it closes at the end; then, closed is part of the error of a collective. Each transport has its
// own tests for ranks that fail or disagree.
func CheckTransport[C Comm](t *testing.T, c C, closed string) {
	t.Helper()
	if c.Rank() < 0 || c.Rank() >= c.Size() {
		t.Errorf("rank %d of %d", c.Rank(), c.Size())
	}
	CheckSums(t, c, C.AllReduce)
	checkSameBits(t, c)
	CheckGathers(t, c)
	CheckBroadcasts(t, c)
	if err := c.Barrier(); err != nil {
		t.Error(err)
	}
	checkClosed(t, c, closed)
}

// CheckBroadcasts broadcasts data of several sizes from each rank.
func CheckBroadcasts[C Comm](t *testing.T, c C) {
	t.Helper()
	for root := range c.Size() {
		for _, n := range []int{0, 1, 13, 4000, 70_001} {
			data := func(rank int) []byte { return bytes.Repeat([]byte{byte(100*rank + 1), byte(n), 9}, n)[:n] }
			got := data(c.Rank())
			if err := c.Broadcast(got, root); err != nil || !bytes.Equal(got, data(root)) {
				t.Errorf("broadcast of %d bytes from rank %d: %v, or other bytes", n, root, err)
			}
		}
	}
}

// CheckSums checks all-reduce with arrays from empty to large.
func CheckSums[C Comm, T int32 | int64 | float32 | float64](t *testing.T, c C, allReduce func(C, []T) error) {
	t.Helper()
	for _, n := range []int{0, 1, 7, 1024, 421642} {
		values := make([]T, n)
		for i := range values {
			values[i] = T(i%100) * T(c.Rank()+1)
		}
		if err := allReduce(c, values); err != nil {
			t.Errorf("%d values: %v", n, err)
			return
		}
		for i, got := range values {
			if want := T(i%100) * T(c.Size()*(c.Size()+1)/2); got != want {
				t.Errorf("%T: element %d of %d: got %v, want %v", values, i, n, got, want)
				return
			}
		}
	}
}

// checkSameBits checks that a sum that depends on the order of additions has the same bits on all
// ranks.
func checkSameBits(t *testing.T, c Comm) {
	t.Helper()
	values := make([]float64, 1000)
	for i := range values {
		values[i] = 1 / float64(i*3+c.Rank()+1)
	}
	if err := c.AllReduce(values); err != nil {
		t.Error(err)
		return
	}
	var mine bytes.Buffer
	if err := binary.Write(&mine, binary.LittleEndian, values); err != nil {
		t.Error(err)
	}
	all, err := c.AllGather(mine.Bytes())
	if err != nil {
		t.Error(err)
	}
	for rank, theirs := range all {
		if !bytes.Equal(theirs, mine.Bytes()) {
			t.Errorf("ranks %d and %d have sums with different bits", c.Rank(), rank)
		}
	}
}

// CheckScatters checks reduce-scatter with parts from empty to large. The parts differ, and so do
// the ranks' values.
func CheckScatters[C Comm, T int32 | int64 | float32 | float64](t *testing.T, c C, reduceScatter func(c C, in, out []T) error) {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2)) // The same on all ranks.
	for _, n := range []int{0, 1, 2, 7, 1 + random.IntN(5000), 100_000 + random.IntN(1000)} {
		value := func(rank, i int) T { return T((i*7+rank*13)%100 - rank) }
		in, out := make([]T, n*c.Size()), make([]T, n)
		for i := range in {
			in[i] = value(c.Rank(), i)
		}
		if err := reduceScatter(c, in, out); err != nil {
			t.Errorf("%d values a rank: %v", n, err)
			return
		}
		for i, got := range out {
			var want T
			for rank := range c.Size() {
				want += value(rank, c.Rank()*n+i)
			}
			if got != want {
				t.Errorf("%T: element %d of rank %d's %d: got %v, want %v", out, i, c.Rank(), n, got, want)
				return
			}
		}
		for i, got := range in {
			if got != value(c.Rank(), i) {
				t.Errorf("%T: the reduce-scatter changed what it was given", out)
				return
			}
		}
	}
}

// CheckGathers gathers data of several sizes.
func CheckGathers[C Comm](t *testing.T, c C) {
	t.Helper()
	for _, n := range []int{0, 1, 2, 6, 7, 8, 14, 20, 5000} {
		data := func(rank int) []byte { return bytes.Repeat([]byte{byte(100 * rank), byte(n), 9}, n)[:n] }
		all, err := c.AllGather(data(c.Rank()))
		if err != nil || len(all) != c.Size() {
			t.Errorf("all-gather: %d parts, %v", len(all), err)
			return
		}
		for rank, got := range all {
			if !bytes.Equal(got, data(rank)) {
				t.Errorf("all-gather: rank %d's %d bytes are %v", rank, n, got)
			}
		}
	}
}

// checkClosed closes the Comm twice. After that a collective must fail, with an error that names
// the rank.
func checkClosed[C Comm](t *testing.T, c C, want string) {
	t.Helper()
	who := fmt.Sprintf("rank %d of %d", c.Rank(), c.Size())
	for range 2 {
		if err := c.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	if err := c.Barrier(); err == nil || !strings.Contains(err.Error(), who) || !strings.Contains(err.Error(), want) {
		t.Errorf("after Close: %v, want %q and %q", err, who, want)
	}
}
