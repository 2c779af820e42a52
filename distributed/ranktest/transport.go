package ranktest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
)

// Comm is one rank's end of a transport. Packages mpi and tcp implement it.
type Comm interface {
	Rank() int
	Size() int
	Broadcast(data []byte, root int) error
	AllGather(data []byte) ([][]byte, error)
	Barrier() error
	Close() error
}

// Transport describes a kind of Comm to CheckTransport.
type Transport[C Comm] struct {
	Float32 func(C, []float32) error
	Float64 func(C, []float64) error
	Int32   func(C, []int32) error
	Int64   func(C, []int64) error
	// Closed is part of the error of a collective after Close.
	Closed string
}

// CheckTransport tests the contract of the transports. Every rank calls it with its own Comm, which
// it closes at the end. Each transport has its own tests for ranks that fail or disagree.
func CheckTransport[C Comm](t *testing.T, kind Transport[C], c C) {
	t.Helper()
	if c.Rank() < 0 || c.Rank() >= c.Size() {
		t.Errorf("rank %d of %d", c.Rank(), c.Size())
	}
	checkSums(t, c, kind.Float32)
	checkSums(t, c, kind.Float64)
	checkSums(t, c, kind.Int32)
	checkSums(t, c, kind.Int64)
	checkSameBits(t, c, kind.Float32)
	CheckGathers(t, c)
	for root := range c.Size() {
		message := fmt.Appendf(nil, "from rank %d", c.Rank())
		if err := c.Broadcast(message, root); err != nil || string(message) != fmt.Sprintf("from rank %d", root) {
			t.Errorf("broadcast: %q, %v", message, err)
		}
	}
	if err := c.Barrier(); err != nil {
		t.Error(err)
	}
	checkClosed(t, c, kind.Closed)
}

// checkSums checks all-reduce with arrays from empty to large.
func checkSums[C Comm, T int32 | int64 | float32 | float64](t *testing.T, c C, allReduce func(C, []T) error) {
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
func checkSameBits[C Comm](t *testing.T, c C, allReduce func(C, []float32) error) {
	t.Helper()
	values := make([]float32, 1000)
	for i := range values {
		values[i] = 1 / float32(i*3+c.Rank()+1)
	}
	if err := allReduce(c, values); err != nil {
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
