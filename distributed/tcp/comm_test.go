package tcp_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"gonbatch/distributed/ranktest"
	"gonbatch/distributed/tcp"
)

// onRanks runs body on each rank of a ring, in goroutines.
func onRanks(t testing.TB, n int, body func(c *tcp.Comm)) {
	t.Helper()
	master := ranktest.FreeAddress(t)
	var group sync.WaitGroup
	for rank := range n {
		group.Go(func() {
			c, err := tcp.Init(t.Context(), tcp.Config{Rank: rank, Size: n, Master: master, Timeout: 2 * time.Minute})
			if err != nil {
				t.Error(err)
				return
			}
			body(c)
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
}

func TestContract(t *testing.T) {
	// The last ones use a chain for little data.
	for _, n := range []int{1, 2, 3, 5, 16} {
		t.Run(fmt.Sprintf("%d ranks", n), func(t *testing.T) {
			onRanks(t, n, func(c *tcp.Comm) {
				ranktest.CheckSums(t, c, tcp.AllReduce[float32])
				ranktest.CheckSums(t, c, tcp.AllReduce[int32])
				ranktest.CheckSums(t, c, tcp.AllReduce[int64])
				ranktest.CheckScatters(t, c, tcp.ReduceScatter[float32])
				ranktest.CheckScatters(t, c, tcp.ReduceScatter[float64])
				ranktest.CheckScatters(t, c, tcp.ReduceScatter[int32])
				ranktest.CheckScatters(t, c, tcp.ReduceScatter[int64])
				ranktest.CheckTransport(t, c, "the ring is closed")
			})
		})
	}
}

// TestHuge: more than 2^31 bytes are summed and sent correctly.
func TestHuge(t *testing.T) {
	onRanks(t, 2, func(c *tcp.Comm) { ranktest.CheckHuge(t, c, tcp.AllReduce[int32]) })
}

// TestDisagreement: ranks that disagree fail at once, instead of mixing up bytes.
func TestDisagreement(t *testing.T) {
	onRanks(t, 2, func(c *tcp.Comm) {
		err := tcp.AllReduce(c, make([]float32, 10+c.Rank()))
		want := fmt.Sprintf("rank %d of 2: all-reduce: rank %d calls", c.Rank(), 1-c.Rank())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	})
}

// TestDisagreementOfSome: if some ranks disagree, all ranks fail, including those whose neighbours
// agree with them. No rank mistakes the bytes of a later collective for the current one's.
func TestDisagreementOfSome(t *testing.T) {
	for _, odd := range []int{0, 2, 4} {
		onRanks(t, 5, func(c *tcp.Comm) {
			n := 1000
			if c.Rank() == odd {
				n++
			}
			if err := tcp.AllReduce(c, make([]float64, n)); err == nil {
				t.Errorf("rank %d of those that disagree with rank %d has a sum", c.Rank(), odd)
			}
			if err := tcp.AllReduce(c, make([]float64, 3)); err == nil || !strings.Contains(err.Error(), "an earlier collective failed") {
				t.Errorf("rank %d: the next collective: %v", c.Rank(), err)
			}
		})
	}
}

// TestInPieces: sums of more than what is received at once are complete.
func TestInPieces(t *testing.T) {
	onRanks(t, 3, func(c *tcp.Comm) {
		values := make([]float64, 1_000_003)
		for i := range values {
			values[i] = float64(i + c.Rank())
		}
		if err := tcp.AllReduce(c, values); err != nil {
			t.Error(err)
		}
		for i, got := range values {
			if want := float64(3*i + 3); got != want {
				t.Errorf("rank %d: %v at %d, want %v", c.Rank(), got, i, want)
				return
			}
		}
	})
}

// TestDisagreementOnTheChain is TestDisagreementOfSome for little data of many ranks.
func TestDisagreementOnTheChain(t *testing.T) {
	const n = 17
	for _, odd := range []int{0, 8, n - 1} {
		onRanks(t, n, func(c *tcp.Comm) {
			gathered := 1
			if c.Rank() == odd {
				gathered++
			}
			if _, err := c.AllGather(make([]byte, gathered)); err == nil {
				t.Errorf("rank %d of those that disagree with rank %d has all data", c.Rank(), odd)
			}
			if err := tcp.AllReduce(c, []int32{1}); err == nil || !strings.Contains(err.Error(), "an earlier collective failed") {
				t.Errorf("rank %d: the next collective: %v", c.Rank(), err)
			}
		})
	}
}

// TestGoneWhileSending: all ranks fail if one exits while the others have more to send than a
// connection can buffer.
func TestGoneWhileSending(t *testing.T) {
	onRanks(t, 4, func(c *tcp.Comm) {
		if c.Rank() == 1 {
			return
		}
		if err := tcp.AllReduce(c, make([]float64, 20_000_000)); err == nil {
			t.Errorf("rank %d has a sum", c.Rank())
		}
	})
}

// TestScatterDisagreement: ranks that disagree about a reduce-scatter fail at once.
func TestScatterDisagreement(t *testing.T) {
	onRanks(t, 2, func(c *tcp.Comm) {
		n := 10 + c.Rank()
		err := tcp.ReduceScatter(c, make([]float32, 2*n), make([]float32, n))
		want := fmt.Sprintf("rank %d of 2: reduce-scatter: rank %d calls", c.Rank(), 1-c.Rank())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	})
}

// TestGone: if a rank exits, its neighbours get an error that names it.
func TestGone(t *testing.T) {
	onRanks(t, 2, func(c *tcp.Comm) {
		if c.Rank() == 1 {
			return // This closes its connections.
		}
		if err := tcp.AllReduce(c, make([]float64, 5)); err == nil || !strings.Contains(err.Error(), "rank 0 of 2: all-reduce: ") || !strings.Contains(err.Error(), "rank 1") {
			t.Errorf("got %v", err)
		}
	})
}

func TestInitRefuses(t *testing.T) {
	tests := []struct {
		name  string
		other *tcp.Config // The rank besides rank 0 of 2; nil if there is none.
		want  string
	}{
		{"no other rank", nil, "rank 0 of 2: not all ranks connected to 127.0.0.1"},
		{"a rank twice", &tcp.Config{Rank: 0, Size: 2}, "address already in use"},
		{"another size", &tcp.Config{Rank: 1, Size: 3}, "rank 1 says the world has 3 ranks, rank 0 says 2"},
		{"no such rank", &tcp.Config{Rank: 5, Size: 2}, "rank 5 of 2"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			master := ranktest.FreeAddress(t)
			errs := make(chan error, 2)
			start := func(c tcp.Config) {
				c.Master, c.Timeout = master, time.Second
				_, err := tcp.Init(context.Background(), c)
				errs <- err
			}
			go start(tcp.Config{Rank: 0, Size: 2})
			all := ""
			if test.other != nil {
				go start(*test.other)
				all = fmt.Sprint(<-errs)
			}
			all += fmt.Sprint(<-errs)
			if !strings.Contains(all, test.want) {
				t.Errorf("got %s, want %q", all, test.want)
			}
		})
	}
}
