package logger

import "math"

// histogramBuckets is the number of buckets of a histogram.
const histogramBuckets = 64

// histogram counts values in buckets of equal width, from the smallest to the largest.
type histogram struct {
	min, max, count, sum, sumSquares float64
	// limits are the buckets' upper ends; counts are the numbers of values in them.
	limits, counts []float64
}

// newHistogram counts the finite values, and returns the number of the others.
func newHistogram(values []float64) (h histogram, notFinite int) {
	h.min, h.max = math.Inf(1), math.Inf(-1)
	for _, x := range values {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			notFinite++
			continue
		}
		h.min, h.max = min(h.min, x), max(h.max, x)
		h.count, h.sum, h.sumSquares = h.count+1, h.sum+x, h.sumSquares+x*x
	}
	if h.count == 0 {
		return histogram{}, notFinite
	}
	h.fill(values)
	return h, notFinite
}

func (h *histogram) fill(values []float64) {
	n := histogramBuckets
	width := h.max/float64(n) - h.min/float64(n) // So that the range itself can't overflow.
	if !(h.min+width > h.min) {
		h.limits, h.counts = []float64{h.max}, []float64{h.count}
		return
	}
	h.limits, h.counts = make([]float64, n), make([]float64, n)
	for i := range n {
		h.limits[i] = h.min*(1-float64(i+1)/float64(n)) + h.max*(float64(i+1)/float64(n))
	}
	h.limits[n-1] = h.max
	for _, x := range values {
		if !math.IsNaN(x) && !math.IsInf(x, 0) {
			h.counts[min(n-1, int(x/width-h.min/width))]++
		}
	}
}
