package drawing

import (
	"testing"
)

func TestThinned(t *testing.T) {
	points := thinned(nil, 3)
	for i := range 10 {
		points = append(points, struct{ X, Y float64 }{float64(i), float64(2 * i)})
	}
	got := thinned(points, 5)
	if len(got) != 5 || got[0].X != 0.5 || got[4].Y != 17 {
		t.Errorf("thinned: %v", got)
	}
}
