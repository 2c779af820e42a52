package table

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Cell is a value of a table: a number, a text, or missing, if it is its zero value.
type Cell struct {
	Text     string
	Number   float64
	IsNumber bool
}

// mostWhole is the size of the largest number that is written with all its digits.
const mostWhole = 1 << 53

// String returns the cell as text. A whole number has all its digits, as the number or the name of
// a class does.
func (c Cell) String() string {
	switch {
	case !c.IsNumber:
		return c.Text
	case math.Abs(c.Number) <= mostWhole && c.Number == math.Trunc(c.Number):
		return strconv.FormatFloat(c.Number, 'f', -1, 64)
	}
	return strconv.FormatFloat(c.Number, 'g', -1, 64)
}

// missing are values that mean that there is none, in lower case.
var missing = []string{"", "na", "nan", "null"}

func (c Cell) missing() bool {
	if c.IsNumber {
		return math.IsNaN(c.Number)
	}
	return len(c.Text) <= len("null") && slices.Contains(missing, strings.ToLower(c.Text))
}

// bits converts the cells of a row to the bits of its numbers: float32, and int32 for the class.
func (l *layout) bits(to []uint32, cells []Cell) error {
	for i, cell := range cells {
		var err error
		if name := l.used[i]; i >= len(l.Inputs) && name == l.Class {
			to[i], err = l.class(cell)
		} else {
			to[i], err = l.number(name, cell)
		}
		if err != nil {
			return fmt.Errorf("column %q: %w", l.used[i], err)
		}
	}
	return nil
}

func (l *layout) number(name string, cell Cell) (uint32, error) {
	if cell.missing() {
		value, ok := l.Missing[name]
		if !ok {
			return 0, fmt.Errorf("the value is missing (%q): set Config.Missing to the number to use instead", cell)
		}
		return math.Float32bits(value), nil
	}
	number := cell.Number
	if !cell.IsNumber {
		var err error
		if number, err = strconv.ParseFloat(cell.Text, 32); err != nil && !errors.Is(err, strconv.ErrRange) {
			return 0, fmt.Errorf("%.40q is not a number", cell.Text)
		}
	}
	value := float32(number)
	if math.IsInf(float64(value), 0) {
		return 0, fmt.Errorf("%.40q does not fit into a float32", cell)
	}
	return math.Float32bits(value), nil
}

func (l *layout) class(cell Cell) (uint32, error) {
	if len(l.classes) > 0 {
		class, ok := l.classes[cell.String()]
		if !ok {
			return 0, fmt.Errorf("%.40q is none of the classes %q", cell, l.Classes)
		}
		return uint32(class), nil
	}
	class, err := strconv.ParseInt(cell.String(), 10, 32)
	if err != nil || class < 0 {
		return 0, fmt.Errorf("%.40q is not the number of a class: set Config.Classes to the names of the classes, or use whole numbers from 0", cell)
	}
	return uint32(class), nil
}
