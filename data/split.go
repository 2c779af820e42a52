package data

import (
	"fmt"
	"math"

	"gonbatch/data/shuffle"
	"gonbatch/internal/plural"
)

// Split divides ds into parts at random, for example into a training set and a validation set. The
// fractions are the sizes of the parts; their sum must be 1. Each example is in one part, and the
// parts depend only on the seed and the number of examples.
//
//	parts, err := data.Split(photos, 1, 0.8, 0.2)
//	trainSet, validationSet := parts[0], parts[1]
func Split(ds Dataset, seed uint64, fractions ...float64) ([]Dataset, error) {
	counts, sum, begin := make([]int, len(fractions)), 0.0, 0
	for i, fraction := range fractions {
		if !(fraction > 0) {
			return nil, fmt.Errorf("data: split %s: fraction %d must be more than 0, got %g", ds.Name(), i+1, fraction)
		}
		sum += fraction
		end := int(math.Round(min(sum, 1) * float64(ds.Len())))
		counts[i], begin = end-begin, end
	}
	if !(math.Abs(sum-1) < 1e-6) {
		return nil, fmt.Errorf("data: split %s: the sum of the fractions must be 1, got %g", ds.Name(), sum)
	}
	return SplitCounts(ds, seed, counts...)
}

// SplitCounts is like Split, but takes the number of examples in each part. Their sum must be
// ds.Len().
func SplitCounts(ds Dataset, seed uint64, counts ...int) ([]Dataset, error) {
	sum := 0
	for i, count := range counts {
		if count < 1 {
			return nil, fmt.Errorf("data: split the %s of %s: part %d of %d would have %d: each part needs at least 1", plural.Of(ds.Len(), "example"), ds.Name(), i+1, len(counts), count)
		}
		sum += count
	}
	if sum != ds.Len() {
		return nil, fmt.Errorf("data: split %s: it has %s, the parts have %d", ds.Name(), plural.Of(ds.Len(), "example"), sum)
	}
	order, begin := shuffle.Random(ds.Len(), seed, splitStream), 0
	parts := make([]Dataset, len(counts))
	for i, count := range counts {
		first := begin
		begin += count
		name := fmt.Sprintf("%s-seed%d-%dof%d", ds.Name(), seed, i+1, len(counts))
		number := func(i int) int { return order.At(first + i) }
		parts[i] = partOf(ds, name, count, number, fmt.Sprintf("split by seed %d from %d", seed, first))
	}
	return parts, nil
}

// splitStream makes the order differ from that of any epoch with the same seed.
const splitStream = 1 << 63
