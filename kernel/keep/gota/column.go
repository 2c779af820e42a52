package gota

import (
	"fmt"
	"slices"

	"github.com/go-gota/gota/series"
)

// column is the saved form of a series. Its values are in the list of its type.
type column struct {
	Name    string
	Type    series.Type
	Strings []string
	Ints    []int
	Floats  []float64
	Bools   []bool
	// Missing marks the elements that have no value; it is empty if all have one.
	Missing []bool
	Err     string
}

func columnOf(s series.Series) (column, error) {
	c := column{Name: s.Name, Type: s.Type(), Err: message(s.Err)}
	if c.Type == "" { // A series without elements: gota itself knows nothing more about it.
		return c, nil
	}
	if missing := s.IsNaN(); slices.Contains(missing, true) {
		c.Missing = missing
	}
	switch c.Type {
	case series.String:
		c.Strings = s.Records()
	case series.Float:
		c.Floats = s.Float()
	case series.Int:
		c.Ints = make([]int, s.Len())
		for i := range c.Ints {
			c.Ints[i], _ = s.Elem(i).Int() // An error is a missing value.
		}
	case series.Bool:
		c.Bools = make([]bool, s.Len())
		for i := range c.Bools {
			c.Bools[i], _ = s.Elem(i).Bool()
		}
	default:
		return c, fmt.Errorf("a series of type %q can't be kept", c.Type)
	}
	return c, nil
}

// series converts a column back to a series.
func (c column) series() (s series.Series) {
	switch c.Type {
	case series.String:
		s = series.New(c.Strings, c.Type, c.Name)
	case series.Float:
		s = series.New(c.Floats, c.Type, c.Name)
	case series.Int:
		s = series.New(c.Ints, c.Type, c.Name)
	case series.Bool:
		s = series.New(c.Bools, c.Type, c.Name)
	}
	for i, missing := range c.Missing {
		if missing {
			s.Elem(i).Set(nil)
		}
	}
	s.Err = failure(c.Err)
	return s
}
