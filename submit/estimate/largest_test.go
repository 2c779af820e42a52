package estimate

import (
	"errors"
	"math/rand/v2"
	"testing"
)

// TestLargest compares the search with a search of all batch sizes.
func TestLargest(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		fixed, each, tooLarge := rng.Int64N(1000), 1+rng.Int64N(50), 2+rng.IntN(3000)
		step, jump := int64(1+rng.IntN(4)), rng.Int64N(100)
		memory := func(batch int) int64 { // Nearly a line: sizes are rounded, and some algorithm changes.
			m := fixed + each*(int64(batch)/step*step)
			if batch > tooLarge/2 {
				m += jump
			}
			return m
		}
		limit := memory(tooLarge) - 1 - rng.Int64N(memory(tooLarge))
		asked := 0
		got, err := largest(tooLarge, memory(tooLarge), limit, func(batch int) (int64, error) {
			asked++
			if batch < 1 || batch >= tooLarge {
				t.Fatalf("asked for %d, below %d", batch, tooLarge)
			}
			return memory(batch), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		want := 0
		for batch := 1; batch < tooLarge && memory(batch) <= limit; batch++ {
			want = batch
		}
		if got > want || asked > tries {
			t.Fatalf("got %d after %d tries, want at most %d", got, asked, want)
		}
		if float64(want-got) > 0.05*float64(tooLarge) {
			t.Fatalf("got %d, but %d fits too: fixed %d, each %d, limit %d", got, want, fixed, each, limit)
		}
	}
}

func TestLargestFails(t *testing.T) {
	broken := errors.New("broken")
	if _, err := largest(8, 100, 50, func(int) (int64, error) { return 0, broken }); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if got, err := largest(1, 100, 50, nil); got != 0 || err != nil {
		t.Errorf("a batch of 1 that does not fit: got %d, %v", got, err)
	}
}
