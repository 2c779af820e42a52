package data_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/data"
)

// numbered is a dataset whose inputs are the examples' numbers, plus 1,000 times the epoch.
type numbered int

func (n numbered) Name() string { return "numbered" }
func (n numbered) Len() int     { return int(n) }

func (n numbered) Batch(indices []int) (inputs, labels []*tensors.Tensor, err error) {
	return n.EpochBatch(0, indices)
}

func (n numbered) EpochBatch(epoch int, indices []int) (inputs, labels []*tensors.Tensor, err error) {
	values := make([]int32, len(indices))
	for i, index := range indices {
		if index < 0 || index >= int(n) {
			return nil, nil, fmt.Errorf("no example %d", index)
		}
		values[i] = int32(index + 1000*epoch)
	}
	return []*tensors.Tensor{tensors.FromFlatDataAndDimensions(values, len(values), 1)}, nil, nil
}

// numbers returns the inputs of all examples of a numbered dataset in an epoch.
func numbers(t *testing.T, ds data.Dataset, epoch int) []int32 {
	t.Helper()
	indices := make([]int, ds.Len())
	for i := range indices {
		indices[i] = i
	}
	inputs, _, err := data.EpochBatch(ds, epoch, indices)
	if err != nil {
		t.Fatal(err)
	}
	return tensors.MustCopyFlatData[int32](inputs[0])
}

// TestSplit: at any size and fractions, each example is in one part, the parts have the requested
// sizes to within one example, and they are the same each time, but differ for another seed.
func TestSplit(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		n, left, fractions := 10+rng.IntN(500), 1.0, []float64(nil)
		for range rng.IntN(4) {
			fractions = append(fractions, left*(0.3+0.4*rng.Float64()))
			left -= fractions[len(fractions)-1]
		}
		fractions = append(fractions, left)
		seed := rng.Uint64()
		split := func(seed uint64) (all [][]int32) {
			parts, err := data.Split(numbered(n), seed, fractions...)
			if err != nil {
				if strings.Contains(err.Error(), "would have 0") {
					return nil
				}
				t.Fatalf("%d examples, %v: %v", n, fractions, err)
			}
			for i, p := range parts {
				if d := float64(p.Len()) - fractions[i]*float64(n); d > 1 || d < -1 {
					t.Errorf("part %d of %d examples, %v, has %d", i, n, fractions, p.Len())
				}
				all = append(all, numbers(t, p, 0))
			}
			return all
		}
		parts := split(seed)
		if parts == nil {
			continue
		}
		whole := slices.Concat(parts...)
		if !slices.EqualFunc(parts, split(seed), slices.Equal) {
			t.Error("the same seed gives other parts")
		}
		if slices.EqualFunc(parts, split(seed+1), slices.Equal) && len(parts) > 1 {
			t.Error("another seed gives the same parts")
		}
		slices.Sort(whole)
		if !slices.Equal(whole, numbers(t, numbered(n), 0)) {
			t.Errorf("%d examples, %v: not each is in one part", n, fractions)
		}
	}
}

// TestSplitKeepsEpochs: the parts of a dataset that depends on epochs do so too, and have their own
// names.
func TestSplitKeepsEpochs(t *testing.T) {
	parts, err := data.SplitCounts(numbered(10), 7, 4, 6)
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range []data.Dataset{parts[1], data.Range(parts[1], 1, 4), data.First(numbered(10), 3)} {
		before, after := numbers(t, p, 0), numbers(t, p, 3)
		for k := range before {
			if after[k] != before[k]+3000 {
				t.Errorf("dataset %d: epoch 3 has %v, epoch 0 %v", i, after, before)
			}
		}
	}
	if parts[0].Name() != "numbered-seed7-1of2" {
		t.Errorf("a part is called %q", parts[0].Name())
	}
}

func TestSplitRefuses(t *testing.T) {
	for want, split := range map[string]func() ([]data.Dataset, error){
		"the sum of the fractions must be 1, got 0.9":   func() ([]data.Dataset, error) { return data.Split(numbered(10), 1, 0.8, 0.1) },
		"the sum of the fractions must be 1, got 80":    func() ([]data.Dataset, error) { return data.Split(numbered(100), 1, 80) },
		"fraction 2 must be more than 0, got -0.5":      func() ([]data.Dataset, error) { return data.Split(numbered(10), 1, 1.5, -0.5) },
		"part 2 of 2 would have 0":                      func() ([]data.Dataset, error) { return data.Split(numbered(10), 1, 0.99, 0.01) },
		"it has 10 examples, the parts have 9":          func() ([]data.Dataset, error) { return data.SplitCounts(numbered(10), 1, 8, 1) },
		"part 1 of 2 would have -1: each part needs at": func() ([]data.Dataset, error) { return data.SplitCounts(numbered(10), 1, -1, 11) },
	} {
		if _, err := split(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestSplitBillion: the parts of a billion examples need no memory.
func TestSplitBillion(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	parts, err := data.Split(numbered(1_000_000_000), 1, 0.999999, 0.000001)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int32]bool{}
	for _, number := range numbers(t, parts[1], 0) {
		seen[number] = true
	}
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 1<<20 || len(seen) != 1000 {
		t.Errorf("%d bytes for %d different examples of the smaller part", used, len(seen))
	}
}
