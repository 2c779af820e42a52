package shuffle_test

import (
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"gonbatch/data/shuffle"
	"gonbatch/internal/tier"
)

// TestPermutation: an order of any size has each number once, and is another one for another seed
// or stream.
func TestPermutation(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	sizes := []int{shuffle.Listed, shuffle.Listed + 1, 1 << 21}
	for n := range tier.Tries(150, 50) {
		sizes = append(sizes, n+1, 1+random.IntN(20000))
	}
	for _, n := range sizes {
		seed, stream := random.Uint64(), random.Uint64()
		order := list(shuffle.Encrypted(n, seed, stream), n)
		if !slices.Equal(order, list(shuffle.Encrypted(n, seed, stream), n)) {
			t.Fatalf("%d: the same seed gives two orders", n)
		}
		for _, other := range []shuffle.Order{shuffle.Encrypted(n, seed+1, stream), shuffle.Encrypted(n, seed, stream+1)} {
			if n > 20 && slices.Equal(order, list(other, n)) {
				t.Fatalf("%d: another seed gives the same order", n)
			}
		}
		slices.Sort(order)
		if !slices.Equal(order, list(shuffle.Sorted(), n)) {
			t.Fatalf("%d: not each number is there once", n)
		}
	}
}

// list lists an order.
func list(o shuffle.Order, n int) []int {
	numbers := make([]int, n)
	for i := range numbers {
		numbers[i] = o.At(i)
	}
	return numbers
}

// TestSmallOrdersStay: up to a million examples have the order of math/rand's Perm, so that
// training runs of older versions resume.
func TestSmallOrdersStay(t *testing.T) {
	for _, n := range []int{1, 2, 60000, shuffle.Listed} {
		if !slices.Equal(list(shuffle.Random(n, 7, 3), n), rand.New(rand.NewPCG(7, 3)).Perm(n)) {
			t.Errorf("%d examples have another order", n)
		}
	}
	if n := shuffle.Listed + 1; !slices.Equal(list(shuffle.Random(n, 7, 3), n), list(shuffle.Encrypted(n, 7, 3), n)) {
		t.Errorf("%d examples are listed", n)
	}
}

// TestMixed: over many seeds, each number is equally likely at each place, and so is each
// difference of numbers at neighboring places.
func TestMixed(t *testing.T) {
	const seeds = 10000
	for _, n := range []int{20, 31, 50, 64} { // Random returns lists for these; such networks mix less than large ones.
		at, steps := make([]float64, n*n), make([]float64, n*n)
		for seed := range uint64(seeds) {
			order := list(shuffle.Encrypted(n, seed, 0), n)
			for i, number := range order {
				at[i*n+number]++
				steps[i*n+(order[(i+1)%n]-number+n)%n]++
			}
		}
		uniform(t, n, at, float64(n*n-2*n+1))
		uniform(t, n, slices.DeleteFunc(steps, func(count float64) bool { return count == 0 }), float64(n*(n-2)))
	}
}

// TestEpochsAreIndependent: over many streams of a seed, which are the epochs of a training run,
// what number a place has says nothing about the one that it had in the epoch before.
func TestEpochsAreIndependent(t *testing.T) {
	const n, epochs = 12, 20000
	for _, order := range []func(n int, seed, stream uint64) shuffle.Order{shuffle.Random, shuffle.Encrypted} {
		for _, seed := range []uint64{0, 1, math.MaxUint64} {
			pairs, before := make([]float64, n*n), list(order(n, seed, 0), n)
			for epoch := range uint64(epochs) {
				now := list(order(n, seed, epoch+1), n)
				for i, number := range now {
					pairs[before[i]*n+number]++
				}
				before = now
			}
			uniform(t, n, pairs, (n-1)*(n-1))
		}
	}
}

// uniform compares counts with their mean by a chi-squared test that fails once in millions.
func uniform(t *testing.T, n int, counts []float64, freedom float64) {
	t.Helper()
	mean, chi := 0.0, 0.0
	for _, c := range counts {
		mean += c / float64(len(counts))
	}
	for _, c := range counts {
		chi += (c - mean) * (c - mean) / mean
	}
	if limit := freedom + 6*math.Sqrt(2*freedom) + 20; chi > limit {
		t.Errorf("%d numbers: chi squared is %.0f, at most %.0f expected", n, chi, limit)
	}
}

// TestBillion: an order of a billion examples needs no memory, has no number twice, and each batch
// has examples from everywhere.
func TestBillion(t *testing.T) {
	const n, batches, size = 1_000_000_000, 200, 1000
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	order := shuffle.Random(n, 1, 2)
	seen := make([]int, 0, batches*size)
	random := rand.New(rand.NewPCG(3, 4))
	for _, begin := range random.Perm(n / size / 1000)[:batches] {
		thirds := [3]int{}
		for i := range size {
			number := order.At(begin*size + i)
			seen = append(seen, number)
			thirds[number/(n/3+1)]++
		}
		if slices.Min(thirds[:]) < size/3-90 { // Six standard deviations.
			t.Errorf("the batch at %d has %v of its examples in thirds of the dataset", begin*size, thirds)
		}
	}
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 32<<20 {
		t.Errorf("%d bytes were allocated", used)
	}
	slices.Sort(seen)
	if len(slices.Compact(seen)) != batches*size || seen[0] < 0 || seen[len(seen)-1] >= n {
		t.Errorf("numbers are there twice, or not in the dataset")
	}
}

func BenchmarkAt(b *testing.B) {
	order, sum := shuffle.Random(1_000_000_000, 1, 2), 0
	for i := range b.N {
		sum += order.At(i)
	}
	_ = sum
}
