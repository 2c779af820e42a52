package scale

import "image"

// Floats resizes images of numbers from one size to another, as Bilinear does. The numbers may be
// any, such as normalized ones.
type Floats struct {
	columns, rows []Span
	width         int // Of an old image.
}

// NewFloats returns a Floats for these sizes.
func NewFloats(to, from image.Point) *Floats {
	return &Floats{Spans(to.X, from.X), Spans(to.Y, from.Y), from.X}
}

// Bilinear fills to with from. Both have their pixels row by row, channels last. It may be called
// concurrently.
func (f *Floats) Bilinear(to, from []float32, channels int) {
	width, old := len(f.columns)*channels, f.width*channels
	narrowed := make([]float32, len(from)/old*width)
	for y := range len(from) / old {
		f.narrow(narrowed[y*width:][:width], from[y*old:][:old], channels)
	}
	clear(to)
	for y, span := range f.rows {
		row := to[y*width:][:width]
		for k, weight := range span.Weights {
			for i, value := range narrowed[(span.First+k)*width:][:width] {
				row[i] += weight * value
			}
		}
	}
}

// narrow gives a row the new width.
func (f *Floats) narrow(to, from []float32, channels int) {
	for x, span := range f.columns {
		for ch := range channels {
			sum := float32(0)
			for k, weight := range span.Weights {
				sum += weight * from[(span.First+k)*channels+ch]
			}
			to[x*channels+ch] = sum
		}
	}
}
