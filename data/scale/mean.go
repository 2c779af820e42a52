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
		first, heights, total := triangle(x, n, old)
		result[x] = mean{first, rounded(heights, total)}
	}
	return result
}

// rounded returns weights in these proportions. Their running sums are rounded, so that the total
// is exact even if most weights are less than one unit.
func rounded(heights []float64, total float64) []uint64 {
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

// triangle returns the weights of the mean for pixel x of n, in a row of old ones, up to a factor,
// and their total: a triangle around its place, as wide as two pixels, old or new ones, whichever
// are wider.
func triangle(x, n, old int) (first int, heights []float64, total float64) {
	ratio := float64(old) / float64(n)
	reach := max(1, ratio)
	center := (float64(x)+0.5)*ratio - 0.5
	first = max(0, int(math.Ceil(center-reach)))
	last := min(old-1, int(math.Floor(center+reach)))
	heights = make([]float64, last-first+1)
	for k := range heights {
		heights[k] = max(0, 1-math.Abs(float64(first+k)-center)/reach)
		total += heights[k]
	}
	return first, heights, total
}

// Margin returns where the middle n of old pixels begin. Half a pixel is rounded to an even number,
// as torchvision does it.
func Margin(n, old int) int { return int(math.RoundToEven(float64(old-n) / 2)) }
