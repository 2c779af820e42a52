package scale

import "math"

// mean is a weighted mean of neighbors. The weights sum up to one.
type mean struct {
	first   int
	weights []uint64
}

// of returns the mean, rounded to 8 bits in each lane.
func (m mean) of(pixels []uint64) uint64 {
	pixels = pixels[m.first:][:len(m.weights)]
	sum := uint64(half)
	for k, weight := range m.weights {
		sum += pixels[k] * weight
	}
	return sum >> oneBits & inByte
}

// means returns what each of n pixels is the mean of, in a row of old ones.
func means(n, old int) []mean {
	result := make([]mean, n)
	for x := range result {
		first, heights := triangle(x, n, old)
		result[x] = mean{first, rounded(heights)}
	}
	return result
}

// rounded returns weights in these proportions. Their running sums are rounded, so that the total
// is exact even if most weights are less than one unit.
func rounded(heights []float64) []uint64 {
	total := 0.0
	for _, h := range heights {
		total += h
	}
	weights := make([]uint64, len(heights))
	sum, done := 0.0, uint64(0)
	for k, h := range heights {
		sum += h
		upTo := uint64(math.Round(sum / total * one))
		weights[k] = upTo - done
		done = upTo
	}
	return weights
}

func longest(rows []mean) int {
	n := 0
	for _, m := range rows {
		n = max(n, len(m.weights))
	}
	return n
}
