package logger

// recorded has the last step of each metric that an earlier process recorded.
type recorded map[string]int64

func (r recorded) note(name string, step int64) {
	if last, ok := r[name]; !ok || step > last {
		r[name] = step
	}
}

// fresh returns the values that are not recorded yet.
func (r recorded) fresh(step int64, values map[string]float64) map[string]float64 {
	if len(r) == 0 {
		return values
	}
	left := make(map[string]float64, len(values))
	for name, value := range values {
		if last, ok := r[name]; !ok || step > last {
			left[name] = value
		}
	}
	return left
}
