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

// means returns what each of n pixels is the mean of, in a row of old ones: a triangle around its
// place, as wide as two pixels, old or new ones, whichever are wider.
func means(n, old int) []mean {
	result := make([]mean, n)
	ratio := float64(old) / float64(n)
	reach := max(1, ratio)
	for x := range result {
		center := (float64(x)+0.5)*ratio - 0.5
		first := max(0, int(math.Ceil(center-reach)))
		last := min(old-1, int(math.Floor(center+reach)))
		heights := make([]float64, last-first+1)
		for k := range heights {
			heights[k] = max(0, 1-math.Abs(float64(first+k)-center)/reach)
		}
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
