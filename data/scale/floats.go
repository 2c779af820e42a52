package scale

import "image"

// Floats resizes images of numbers from one size to another, as Bilinear does. The numbers may be
// any, such as normalized ones.
type Floats struct {
	columns, rows []span
	width         int // Of an old image.
}

// NewFloats returns a Floats for these sizes.
func NewFloats(to, from image.Point) *Floats {
	return &Floats{spans(to.X, from.X), spans(to.Y, from.Y), from.X}
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
	for y, s := range f.rows {
		row := to[y*width:][:width]
		for k, weight := range s.weights {
			for i, value := range narrowed[(s.first+k)*width:][:width] {
				row[i] += weight * value
			}
		}
	}
}

// narrow gives a row the new width.
func (f *Floats) narrow(to, from []float32, channels int) {
	for x, s := range f.columns {
		for ch := range channels {
			sum := float32(0)
			for k, weight := range s.weights {
				sum += weight * from[(s.first+k)*channels+ch]
			}
			to[x*channels+ch] = sum
		}
	}
}

// span is a part of a row of pixels, with the weights of a mean over it. They sum up to one.
type span struct {
	first   int
	weights []float32
}

// spans returns what each of n pixels is the mean of, in a row of old ones.
func spans(n, old int) []span {
	all := make([]span, n)
	for x := range all {
		first, heights, total := triangle(x, n, old)
		for _, h := range heights {
			if h > 0 {
				all[x].weights = append(all[x].weights, float32(h/total))
			} else if len(all[x].weights) == 0 {
				first++
			}
		}
		all[x].first = first
	}
	return all
}
