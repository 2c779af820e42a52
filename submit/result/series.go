package result

// Point is the value of a metric at a step.
type Point struct {
	Step  int64
	Value float64
}

// Series is a metric by step. It implements gonum/plot's XYer.
type Series []Point

// Len returns the number of points.
func (s Series) Len() int { return len(s) }

// XY returns the step and the value of a point.
func (s Series) XY(i int) (x, y float64) { return float64(s[i].Step), s[i].Value }

// Values returns the values without their steps.
func (s Series) Values() []float64 {
	values := make([]float64, len(s))
	for i, p := range s {
		values[i] = p.Value
	}
	return values
}
