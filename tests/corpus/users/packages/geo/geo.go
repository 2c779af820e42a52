// Package geo has shapes.
package geo

import "math"

// Circle is a circle.
type Circle struct{ R float64 }

// Area returns the circle's area.
func (c Circle) Area() float64 { return math.Pi * c.R * c.R }
