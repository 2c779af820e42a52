package folder

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
)

// Metrics maps names to numbers. Unlike in plain JSON, they may be infinite or NaN, as a loss is
// when a training goes wrong.
type Metrics map[string]float64

// MarshalJSON writes numbers, and the strings "NaN", "+Inf" and "-Inf".
func (m Metrics) MarshalJSON() ([]byte, error) {
	all := make(map[string]any, len(m))
	for name, v := range m {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			all[name] = strconv.FormatFloat(v, 'g', -1, 64)
		} else {
			all[name] = v
		}
	}
	return json.Marshal(all)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (m *Metrics) UnmarshalJSON(text []byte) error {
	var all map[string]any
	if err := json.Unmarshal(text, &all); err != nil {
		return err
	}
	*m = make(Metrics, len(all))
	for name, v := range all {
		switch v := v.(type) {
		case float64:
			(*m)[name] = v
		case string:
			f, err := strconv.ParseFloat(v, 64)
			if err != nil {
				return fmt.Errorf("metric %s: %w", name, err)
			}
			(*m)[name] = f
		default:
			return fmt.Errorf("metric %s: %v is no number", name, v)
		}
	}
	return nil
}
