package tcp_test

import (
	"fmt"
	"math/bits"
	"testing"

	"gonbatch/distributed/tcp"
)

// TestWorkOfRanks: in a step, rank 0 sends and receives no more than the others, and no rank's
// messages grow with the number of ranks, except in the ring of much data.
func TestWorkOfRanks(t *testing.T) {
	const little, much = 100, 1 << 16 // Values of 8 bytes; the latter can be divided by all numbers of ranks here.
	sum := func(n int) func(c *tcp.Comm) error {
		return func(c *tcp.Comm) error { return tcp.AllReduce(c, make([]float64, n)) }
	}
	inProgram := func(c *tcp.Comm) error {
		return tcp.Run(c, tcp.Call{Kind: allReduce, Type: float32s, Count: little, Out: make([]byte, 4*little)})
	}
	spread := func(c *tcp.Comm) error { return c.Broadcast(make([]byte, 8*much), 0) }
	scatter := func(c *tcp.Comm) error {
		return tcp.ReduceScatter(c, make([]float64, little*c.Size()), make([]float64, little))
	}
	inGroup := func(c *tcp.Comm) error {
		return tcp.Run(c, tcp.Call{Kind: allReduce, Type: float32s, Count: little, Places: halves(c.Size()), Out: make([]byte, 4*little)})
	}
	tests := []struct {
		name string
		tree bool // The connections of a tree were made.
		run  func(c *tcp.Comm) error
		// most are the messages that a rank of n may send, and bytes what it may send.
		most, bytes func(n int) int
		equal       bool // All ranks send and receive the same.
	}{
		{"ring", false, sum(much), func(n int) int { return 2*n - 1 }, func(n int) int { return 2*8*much*(n-1)/n + 100 }, true},
		{"tree", true, sum(little), doublings, func(n int) int { return doublings(n) * (8*little + 100) }, true},
		{"tree of a program", true, inProgram, doublings, func(n int) int { return doublings(n) * (4*little + 100) }, true},
		{"chain", false, sum(little), func(n int) int { return max(3, doublings(n)) }, func(n int) int { return doublings(n) * (8*little + 100) }, false},
		{"broadcast", false, spread, func(int) int { return 3 }, func(int) int { return 8*much + 100 }, false},
		{"reduce-scatter", false, scatter, func(n int) int { return n }, func(n int) int { return 8*little*(n-1) + 100 }, true},
		{"groups", false, inGroup, func(n int) int { return max(3, doublings(n/2)) }, func(n int) int { return doublings(n/2) * (4*little + 100) }, false},
		{"barrier", false, (*tcp.Comm).Barrier, func(n int) int { return n }, func(n int) int { return 3*n + 100 }, false},
	}
	for _, test := range tests {
		for _, n := range []int{4, 8, 16} {
			t.Run(fmt.Sprintf("%s, %d ranks", test.name, n), func(t *testing.T) {
				works := make([]*tcp.Work, n)
				onRanks(t, n, func(c *tcp.Comm) {
					if test.tree {
						if err := c.LinkTree(); err != nil || !tcp.Treed(c) {
							t.Errorf("rank %d: the tree is made: %v, %v", c.Rank(), tcp.Treed(c), err)
						}
					} else if err := test.run(c); err != nil { // The first call may make connections.
						t.Error(err)
					}
					works[c.Rank()] = tcp.Count(c)
					if err := test.run(c); err != nil {
						t.Error(err)
					}
				})
				for rank, w := range works {
					if got, most := w.Messages.Load(), int64(test.most(n)); got > most || test.tree && got < most {
						t.Errorf("rank %d sends %d messages, want at most %d, and as many in the tree", rank, got, most)
					}
					if got, limit := max(w.Sent.Load(), w.Received.Load()), int64(test.bytes(n)); got > limit {
						t.Errorf("rank %d sends or receives %d bytes, want at most %d", rank, got, limit)
					}
					if first := works[0]; test.equal && (w.Messages.Load() != first.Messages.Load() || w.Sent.Load() != first.Sent.Load() || w.Received.Load() != first.Received.Load()) {
						t.Errorf("rank %d sends %d bytes in %d messages and receives %d, rank 0 %d in %d and %d", rank,
							w.Sent.Load(), w.Messages.Load(), w.Received.Load(), first.Sent.Load(), first.Messages.Load(), first.Received.Load())
					}
				}
			})
		}
	}
}

// doublings returns the messages that a rank of n, a power of two, sends in recursive doubling.
func doublings(n int) int { return bits.Len(uint(n - 1)) }

// halves divides n ranks into those with even and those with odd numbers.
func halves(n int) []int64 {
	var places []int64
	for rank := range n {
		places = append(places, int64(rank%2), int64(rank/2))
	}
	return places
}

// TestKnownGroups: a collective of groups that were used before allocates nothing to find them,
// however many ranks there are.
func TestKnownGroups(t *testing.T) {
	const ranks = 16
	var first *tcp.Comm
	onRanks(t, ranks, func(c *tcp.Comm) {
		for _, places := range [][]int64{halves(ranks), halves(ranks)} {
			if err := tcp.Team(c, places); err != nil {
				t.Error(err)
			}
		}
		if c.Rank() == 0 {
			first = c
		}
	})
	places := halves(ranks)
	if n := testing.AllocsPerRun(100, func() { _ = tcp.Team(first, places) }); n > 0 {
		t.Errorf("%g allocations", n)
	}
}
