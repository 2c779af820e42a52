package loggertest

import "math"

// edgeValues are metrics of training runs that go wrong, or very well.
var edgeValues = map[string][]float64{
	"one":      {3},
	"constant": {2, 2, 2},
	"zero":     {0, 0},
	"NaN":      {math.NaN(), math.NaN()},
	"infinite": {math.Inf(1), math.Inf(-1), 1},
	"huge":     {math.MaxFloat64, -math.MaxFloat64, 0},
	"tiny":     {5e-324, 0, -5e-324},
	"close":    {1, math.Nextafter(1, 2), math.Nextafter(1, 0)},
	"large":    {1e300, math.Nextafter(1e300, 2e300)},
	"float32":  {math.MaxFloat32, 1e39, -1e39},
}
