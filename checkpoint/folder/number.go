package folder

import (
	"encoding/json"
	"strconv"
)

// Number is a float64 that JSON can always represent: NaN and infinities are the strings "NaN",
// "+Inf" and "-Inf".
type Number float64

// MarshalJSON implements json.Marshaler.
func (n Number) MarshalJSON() ([]byte, error) {
	if x := float64(n); x-x != 0 {
		return json.Marshal(strconv.FormatFloat(x, 'g', -1, 64))
	}
	return json.Marshal(float64(n))
}

// UnmarshalJSON implements json.Unmarshaler.
func (n *Number) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) == nil {
		x, err := strconv.ParseFloat(text, 64)
		*n = Number(x)
		return err
	}
	return json.Unmarshal(data, (*float64)(n))
}

// Metrics maps names to numbers. They may be infinite or NaN, as a loss is when a training run
// diverges.
type Metrics map[string]float64

// MarshalJSON implements json.Marshaler.
func (m Metrics) MarshalJSON() ([]byte, error) {
	all := make(map[string]Number, len(m))
	for name, v := range m {
		all[name] = Number(v)
	}
	return json.Marshal(all)
}

// UnmarshalJSON implements json.Unmarshaler.
func (m *Metrics) UnmarshalJSON(text []byte) error {
	var all map[string]Number
	if err := json.Unmarshal(text, &all); err != nil {
		return err
	}
	*m = make(Metrics, len(all))
	for name, v := range all {
		(*m)[name] = float64(v)
	}
	return nil
}
