package watch

import (
	"bytes"
	"sync"
	"testing"
	"time"
)

// memory is an Exchange between ranks of one process.
type memory struct {
	mu      sync.Mutex
	changed *sync.Cond
	size    int
	blocks  [][]byte
	came    int
	round   int
}

func newMemory(size int) *memory {
	m := &memory{size: size, blocks: make([][]byte, size)}
	m.changed = sync.NewCond(&m.mu)
	return m
}

// seat is one rank's end of the memory.
type seat struct {
	*memory
	rank int
}

func (s seat) AllGather(data []byte) ([][]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	round := s.round
	if s.came == 0 {
		s.blocks = make([][]byte, s.size)
	}
	blocks := s.blocks
	blocks[s.rank] = bytes.Clone(data)
	if s.came++; s.came == s.size {
		s.came = 0
		s.round++
		s.changed.Broadcast()
	}
	for s.round == round {
		s.changed.Wait()
	}
	return blocks, nil
}

func (s seat) Broadcast(data []byte, root int) error {
	all, err := s.AllGather(data)
	if err == nil {
		copy(data, all[root])
	}
	return err
}

// startMany starts a job of many ranks in this process. They share a log.
func startMany(t *testing.T, n int, log *safeBuffer, change func(*Config)) []*Watch {
	t.Helper()
	exchange := newMemory(n)
	watches, errs := make([]*Watch, n), make([]error, n)
	var group sync.WaitGroup
	for rank := range n {
		group.Go(func() {
			c := Config{Rank: rank, Size: n, Host: "here", Exchange: seat{exchange, rank}, Log: log, Exit: func(code int) { select {} }}
			if change != nil {
				change(&c)
			}
			watches[rank], errs[rank] = Start(t.Context(), c)
		})
	}
	group.Wait()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		var group sync.WaitGroup
		for _, w := range watches {
			group.Go(w.Close)
		}
		group.Wait()
	})
	return watches
}

// safeBuffer can be written by several goroutines at once.
type safeBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// TestManyRanks: a thousand ranks that start at once on a small machine connect to their hubs, and
// none is reported as dead.
func TestManyRanks(t *testing.T) {
	n := 1024
	if testing.Short() {
		n = 128
	}
	var log safeBuffer
	start := time.Now()
	watches := startMany(t, n, &log, nil)
	t.Logf("%d ranks started within %v", n, time.Since(start).Round(time.Millisecond))
	for _, w := range watches {
		if !w.on.Load() {
			t.Fatalf("the watch of rank %d is off: %s", w.config.Rank, log.String())
		}
		w.Progress(1)
	}
	if log.String() != "" {
		t.Errorf("log: %s", log.String())
	}
}
