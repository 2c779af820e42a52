package result

// Point is a metric's value at a step.
type Point struct {
	Step  int64
	Value float64
}

// Series is a metric over the steps. It is what gonum/plot calls an XYer.
type Series []Point

// Len is the number of points.
func (s Series) Len() int { return len(s) }

// XY is the step and the value of a point.
func (s Series) XY(i int) (x, y float64) { return float64(s[i].Step), s[i].Value }

// Values are the values alone.
func (s Series) Values() []float64 {
	values := make([]float64, len(s))
	for i, p := range s {
		values[i] = p.Value
	}
	return values
}
