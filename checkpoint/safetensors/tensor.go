package safetensors

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
)

// metadataKey is the only name in a header that is not a tensor's.
const metadataKey = "__metadata__"

// Tensor describes a tensor and the position of its bytes.
type Tensor struct {
	Name  string
	DType DType
	// Shape has the size of each axis, in row-major order. It is empty for a scalar.
	Shape []int
	// Begin and End delimit the tensor's bytes, relative to Header.DataStart.
	Begin, End int64
}

// ByteSize returns the number of bytes that the tensor's type and shape require.
func (t Tensor) ByteSize() (int64, error) {
	size := t.DType.Size()
	if size == 0 {
		return 0, fmt.Errorf("tensor %q: unknown type %q", t.Name, t.DType)
	}
	for _, n := range t.Shape {
		if n < 0 {
			return 0, fmt.Errorf("tensor %q: shape %v has a negative axis", t.Name, t.Shape)
		}
		// This is checked even if a later axis is 0: Python's library refuses shapes that overflow
		// on the way.
		if n > 0 && size > math.MaxInt64/int64(n) {
			return 0, fmt.Errorf("tensor %q: shape %v is too large", t.Name, t.Shape)
		}
		size *= int64(n)
	}
	return size, nil
}

func checkName(name string) error {
	switch {
	case name == metadataKey:
		return fmt.Errorf("tensor %q: the format reserves this name: rename it", name)
	case name == "":
		return errors.New("a tensor has no name")
	case !utf8.ValidString(name), strings.ContainsRune(name, utf8.RuneError): // JSON has this rune instead of bytes that aren't UTF-8.
		return fmt.Errorf("tensor %q: the name isn't UTF-8", name)
	}
	return nil
}
