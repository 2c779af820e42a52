package trainer

import (
	"encoding/json"
	"strconv"
)

// number is a float64 that JSON can hold whatever it is: NaN and infinities are strings.
type number float64

// MarshalJSON implements json.Marshaler.
func (n number) MarshalJSON() ([]byte, error) {
	if x := float64(n); x-x != 0 {
		return json.Marshal(strconv.FormatFloat(x, 'g', -1, 64))
	}
	return json.Marshal(float64(n))
}

// UnmarshalJSON implements json.Unmarshaler.
func (n *number) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) == nil {
		x, err := strconv.ParseFloat(text, 64)
		*n = number(x)
		return err
	}
	return json.Unmarshal(data, (*float64)(n))
}
