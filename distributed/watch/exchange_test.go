package watch

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"gonbatch/distributed/ranktest"
)

// TestTroubles: all ranks learn of the first errors, and how many there are besides.
func TestTroubles(t *testing.T) {
	tests := []struct {
		name   string
		broken func(rank int) bool
		want   string
	}{
		{"none", func(int) bool { return false }, "[]"},
		{"one", func(rank int) bool { return rank == 7 }, "[rank 7 (here): refused]"},
		{"all", func(int) bool { return true }, "and 12 more ranks]"},
	}
	const n = 20
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			exchange := newMemory(n)
			var group sync.WaitGroup
			for rank := range n {
				group.Go(func() {
					w := &Watch{config: Config{Rank: rank, Size: n, Host: "here", Exchange: seat{exchange, rank}}}
					var mine error
					if tt.broken(rank) {
						mine = errors.New("refused")
					}
					got, err := w.exchangeTroubles(mine)
					if text := fmt.Sprint(got); err != nil || !strings.HasSuffix(text, tt.want) {
						t.Errorf("rank %d got %s, %v; want %s", rank, text, err, tt.want)
					}
				})
			}
			group.Wait()
		})
	}
}

// TestTooFewFiles: a hub that may open too few files for all ranks says so at once.
func TestTooFewFiles(t *testing.T) {
	ranktest.UseUpFiles(t).CloseAll()
	w := &Watch{config: Config{Size: 1024}}
	if got := w.listen(t.Context(), true); !strings.Contains(got.Trouble, "2048 connections need") || !strings.Contains(got.Trouble, "ulimit -Hn") {
		t.Errorf("got %+v", got)
	}
}

// TestPlaceTooLong: a hub whose place is too long to exchange doesn't keep the others waiting.
func TestPlaceTooLong(t *testing.T) {
	const n = 3
	exchange := newMemory(n)
	var group sync.WaitGroup
	for rank := range n {
		group.Go(func() {
			w := &Watch{config: Config{Rank: rank, Size: n, Exchange: seat{exchange, rank}}}
			var mine place
			if rank == 1 {
				mine.Trouble = strings.Repeat("refused ", 1000)
			}
			if found, err := w.exchangePlace(1, mine); err != nil || !strings.Contains(found.Trouble, "bytes to exchange, more than 2048") {
				t.Errorf("rank %d got %v, %v", rank, found, err)
			}
		})
	}
	group.Wait()
}
