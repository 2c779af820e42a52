package sampler_test

import (
	"runtime"
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
				batch = append(batch, s.Shards(order, step, shard, 1)...)
			}
			if want := alone.Shards(alone.Epoch(3), step, 0, 1); !slices.Equal(batch, want) {
				t.Fatalf("%d shards, step %d: got %v, want %v", shards, step, batch, want)
			}
			if got := s.Shards(order, step, 1, shards-1); !slices.Equal(got, batch[len(batch)/shards:]) {
				t.Fatalf("all of %d shards but the first, step %d: got %v of %v", shards, step, got, batch)
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
			for _, i := range s.Shards(order, step, shard, 1) {
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

// TestFillLast: each example is there, and only the first ones of the epoch are there twice, in any
// number of shards.
func TestFillLast(t *testing.T) {
	for _, n := range []int{10, 11, 12, 19, 20} {
		for _, shards := range []int{1, 2, 5} {
			s := mustNew(t, sampler.Config{Len: n, BatchSize: 10, Shards: shards, Shuffle: true, FillLast: true, Seed: 3})
			order, all := s.Epoch(1), []int{}
			for step := range s.Steps() {
				for shard := range shards {
					all = append(all, s.Shards(order, step, shard, 1)...)
				}
			}
			if len(all) != (n+9)/10*10 {
				t.Errorf("%d examples: %d in %d steps", n, len(all), s.Steps())
			}
			if more := all[n:]; !slices.Equal(more, all[:len(more)]) {
				t.Errorf("%d examples: the last batch is filled up with %v, the epoch begins with %v", n, more, all[:len(more)])
			}
			if slices.Sort(all[:n]); len(slices.Compact(all[:n])) != n || all[0] != 0 || all[n-1] != n-1 {
				t.Errorf("%d examples: not all are used", n)
			}
		}
	}
}

// examples lists the examples of an epoch.
func examples(s *sampler.Sampler, epoch int) []int {
	order := s.Epoch(epoch)
	var all []int
	for step := range s.Steps() {
		all = append(all, s.Shards(order, step, 0, 1)...)
	}
	return all
}

func TestOrder(t *testing.T) {
	shuffled := sampler.Config{Len: 1000, BatchSize: 10, Shards: 1, Shuffle: true, Seed: 1}
	a, b := mustNew(t, shuffled), mustNew(t, shuffled)
	if !slices.Equal(examples(a, 4), examples(b, 4)) {
		t.Error("the same seed and epoch gave two orders")
	}
	if slices.Equal(examples(a, 0), examples(a, 1)) {
		t.Error("two epochs have the same order")
	}
	shuffled.Seed = 2
	if slices.Equal(examples(a, 0), examples(mustNew(t, shuffled), 0)) {
		t.Error("two seeds have the same order")
	}
	plain := mustNew(t, sampler.Config{Len: 5, BatchSize: 1, Shards: 1})
	if got := examples(plain, 9); !slices.Equal(got, []int{0, 1, 2, 3, 4}) {
		t.Errorf("without shuffling: %v", got)
	}
}

// TestBillionExamples: a step anywhere in an epoch of a billion examples has the same batch for any
// number of shards, and needs no memory for the order.
func TestBillionExamples(t *testing.T) {
	config := sampler.Config{Len: 1_000_000_007, BatchSize: 24, Shards: 1, Shuffle: true, Seed: 7}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	alone := mustNew(t, config)
	for _, step := range []int{0, 1, alone.Steps() / 2, alone.Steps() - 1} {
		want := alone.Shards(alone.Epoch(2), step, 0, 1)
		for _, config.Shards = range []int{2, 3, 8} {
			s := mustNew(t, config)
			var got []int
			for shard := range config.Shards {
				got = append(got, s.Shards(s.Epoch(2), step, shard, 1)...)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%d shards, step %d: got %v, want %v", config.Shards, step, got, want)
			}
		}
	}
	plain := mustNew(t, sampler.Config{Len: config.Len, BatchSize: 1, Shards: 1})
	if got := plain.Shards(plain.Epoch(0), config.Len-1, 0, 1); got[0] != config.Len-1 {
		t.Errorf("the last example without shuffling is %d", got[0])
	}
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 1<<20 {
		t.Errorf("%d bytes were allocated", used)
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
