package run

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"

	"gonbatch/submit"
)

// interval is a range of numbers for random values; the zero interval is none.
type interval struct {
	low, high float64
	// whole is set for whole numbers, and log if the values' logarithms are uniform.
	whole, log bool
}

// parseInterval parses LOW..HIGH or log(LOW..HIGH). It returns the zero interval for other texts.
func parseInterval(text string) (in interval, err error) {
	inner, log := strings.CutPrefix(text, "log(")
	if log {
		inner, log = strings.CutSuffix(inner, ")")
	}
	first, last, isRange := strings.Cut(inner, "..")
	low, err := strconv.ParseFloat(first, 64)
	high, lastErr := strconv.ParseFloat(last, 64)
	switch {
	case !isRange || err != nil || lastErr != nil:
		return interval{}, nil
	case !(low < high) || math.IsInf(high-low, 0):
		return interval{}, fmt.Errorf("the range %s must go up", inner)
	case log && low <= 0:
		return interval{}, fmt.Errorf("the range %s must begin above 0", text)
	}
	_, lowErr := strconv.Atoi(first)
	_, highErr := strconv.Atoi(last)
	whole := lowErr == nil && highErr == nil
	if whole && max(-low, high) > 1<<53 {
		return interval{}, fmt.Errorf("the range %s has numbers above 2^53", inner)
	}
	return interval{low, high, whole, log}, nil
}

// draw returns a random number of the interval, with four significant digits if it is a real one.
func (in interval) draw() string {
	low, high, share := in.low, in.high, rand.Float64()
	if in.whole {
		high++
	}
	v := low + share*(high-low)
	if in.log {
		v = low * math.Pow(high/low, share)
	}
	v = min(max(v, in.low), in.high)
	if in.whole {
		return strconv.FormatFloat(math.Floor(v), 'f', 0, 64)
	}
	text := strconv.FormatFloat(v, 'g', 4, 64)
	if short, err := strconv.ParseFloat(text, 64); err != nil || short < in.low || short > in.high {
		text = strconv.FormatFloat(v, 'g', -1, 64)
	}
	return text
}

// draw returns a random value of the axis.
func (a axis) draw() string {
	if len(a.values) > 0 {
		return a.values[rand.IntN(len(a.values))]
	}
	return a.random.draw()
}

// drawPoints returns n different points with random values.
func drawPoints(axes []axis, n int) (points []point, err error) {
	seen := map[string]bool{}
	for range 100 * n {
		var p point
		for _, a := range axes {
			p = append(p, setting{a.name, a.draw()})
		}
		if !seen[p.String()] {
			seen[p.String()] = true
			points = append(points, p)
		}
		if len(points) == n {
			return points, nil
		}
	}
	return nil, submit.Usagef("--random=%d: --sweep has hardly more than %d different combinations: leave out --random, or give fewer", n, len(points))
}
