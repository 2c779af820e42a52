package scale

import "math"

// Span is a part of a row of pixels, with the weights of a mean over it. They sum up to one.
type Span struct {
	First   int
	Weights []float32
}

// Spans returns what each of n pixels is the mean of, in a row of old ones.
func Spans(n, old int) []Span {
	spans := make([]Span, n)
	for x := range spans {
		first, heights := triangle(x, n, old)
		for heights[0] == 0 {
			first, heights = first+1, heights[1:]
		}
		for heights[len(heights)-1] == 0 {
			heights = heights[:len(heights)-1]
		}
		spans[x] = Span{first, fractions(heights)}
	}
	return spans
}

// fractions returns numbers in these proportions that sum up to one.
func fractions(heights []float64) []float32 {
	total := 0.0
	for _, h := range heights {
		total += h
	}
	weights := make([]float32, len(heights))
	for k, h := range heights {
		weights[k] = float32(h / total)
	}
	return weights
}

// triangle returns the weights of the mean for pixel x of n, in a row of old ones, up to a factor:
// a triangle around its place, as wide as two pixels, old or new ones, whichever are wider.
func triangle(x, n, old int) (first int, heights []float64) {
	ratio := float64(old) / float64(n)
	reach := max(1, ratio)
	center := (float64(x)+0.5)*ratio - 0.5
	first = max(0, int(math.Ceil(center-reach)))
	last := min(old-1, int(math.Floor(center+reach)))
	heights = make([]float64, last-first+1)
	for k := range heights {
		heights[k] = max(0, 1-math.Abs(float64(first+k)-center)/reach)
	}
	return first, heights
}

// Margin returns where the middle n of old pixels begin. Half a pixel is rounded to an even number,
// as torchvision does it.
func Margin(n, old int) int { return int(math.RoundToEven(float64(old-n) / 2)) }
