package sampler_test

import (
	"slices"
	"strings"
	"testing"

	"gonbatch/distributed/sampler"
)

func mustNew(t *testing.T, c sampler.Config) *sampler.Sampler {
	t.Helper()
	s, err := sampler.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSameBatchesForAnyWorld: the shards of a step form the same batch, whatever their number.
func TestSameBatchesForAnyWorld(t *testing.T) {
	config := sampler.Config{Len: 103, BatchSize: 12, Shards: 1, Shuffle: true, Seed: 7}
	alone := mustNew(t, config)
	for _, shards := range []int{2, 3, 4, 6, 12} {
		config.Shards = shards
		s := mustNew(t, config)
		order := s.Epoch(3)
		for step := range s.Steps() {
			var batch []int
			for shard := range shards {
				batch = append(batch, s.Shard(order, step, shard)...)
			}
			if want := alone.Shard(alone.Epoch(3), step, 0); !slices.Equal(batch, want) {
				t.Fatalf("%d shards, step %d: got %v, want %v", shards, step, batch, want)
			}
		}
	}
}

func TestEveryExampleAtMostOnce(t *testing.T) {
	s := mustNew(t, sampler.Config{Len: 103, BatchSize: 10, Shards: 2, Shuffle: true, Seed: 1})
	if s.Steps() != 10 {
		t.Fatalf("%d steps, want 10", s.Steps())
	}
	seen := map[int]bool{}
	order := s.Epoch(0)
	for step := range s.Steps() {
		for shard := range 2 {
			for _, i := range s.Shard(order, step, shard) {
				if seen[i] || i < 0 || i >= 103 {
					t.Fatalf("example %d is repeated, or not in the dataset", i)
				}
				seen[i] = true
			}
		}
	}
	if len(seen) != 100 {
		t.Errorf("%d examples seen, want 100", len(seen))
	}
}

func TestOrder(t *testing.T) {
	shuffled := sampler.Config{Len: 1000, BatchSize: 10, Shards: 1, Shuffle: true, Seed: 1}
	a, b := mustNew(t, shuffled), mustNew(t, shuffled)
	if !slices.Equal(a.Epoch(4), b.Epoch(4)) {
		t.Error("the same seed and epoch gave two orders")
	}
	if slices.Equal(a.Epoch(0), a.Epoch(1)) {
		t.Error("two epochs have the same order")
	}
	shuffled.Seed = 2
	if slices.Equal(a.Epoch(0), mustNew(t, shuffled).Epoch(0)) {
		t.Error("two seeds have the same order")
	}
	plain := mustNew(t, sampler.Config{Len: 5, BatchSize: 1, Shards: 1})
	if got := plain.Epoch(9); !slices.Equal(got, []int{0, 1, 2, 3, 4}) {
		t.Errorf("without shuffling: %v", got)
	}
}

func TestNewRefuses(t *testing.T) {
	tests := []struct {
		name   string
		config sampler.Config
		want   string
	}{
		{"no shards", sampler.Config{Len: 1, BatchSize: 1}, "0 shards"},
		{"no batch", sampler.Config{Len: 1, Shards: 1}, "batch size of 0"},
		{"uneven", sampler.Config{Len: 100, BatchSize: 64, Shards: 3}, "use 63 or 66"},
		{"batch smaller than the world", sampler.Config{Len: 100, BatchSize: 2, Shards: 3}, "use 3"},
		{"too few examples", sampler.Config{Len: 10, BatchSize: 64, Shards: 2}, "10 examples, fewer than one batch of 64"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := sampler.New(test.config)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want one with %q", err, test.want)
			}
		})
	}
}
