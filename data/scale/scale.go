// Package scale resizes images by bilinear interpolation. When it shrinks an image, each pixel is
// an average over all that it covers, as in Pillow and golang.org/x/image/draw, whose BiLinear is
// the same to within a level but takes several times as long.
//
//	to := image.NewRGBA(image.Rect(0, 0, 224, 224))
//	scale.Bilinear(to, photo)
//
// Bilinear computes with integers, so the result is the same on every machine, although amd64
// processors do it with SSE2. It does not scale the alpha channel: pixels are opaque, on black.
// Floats resizes images of numbers.
package scale

import "image"

// A pixel is a uint64 with three lanes of 21 bits: a multiplication by a weight of at most one,
// which is 2^13, multiplies red, green and blue at once, and a weighted mean of 8-bit values does
// not overflow into the next lane.
const (
	laneBits = 21
	oneBits  = 13
	one      = 1 << oneBits
	lanes    = 1 | 1<<laneBits | 1<<(2*laneBits)
	half     = one / 2 * lanes
	inByte   = 0xff * lanes
)

// Bilinear fills to with from, which must not be empty. For a part of an image, use SubImage.
func Bilinear(to, from *image.RGBA) {
	size, old := to.Rect.Size(), from.Rect.Size()
	columns, rows := means(size.X, old.X), means(size.Y, old.Y)
	if !vectorized(to, from, columns, rows) {
		plain(to, from, columns, rows)
	}
}

// plain is Bilinear in Go.
func plain(to, from *image.RGBA, columns, rows []mean) {
	size, old := to.Rect.Size(), from.Rect.Size()
	r := &narrowed{from: from, columns: columns, rows: make([][]uint64, longest(rows)), wide: make([]uint64, old.X), sums: make([]uint64, size.X)}
	for y, m := range rows {
		r.advance(m.first + len(m.weights))
		r.write(to.Pix[y*to.Stride:][:4*size.X], m)
	}
}

// narrowed has rows of an image that already have the new width, the last few that were asked for.
type narrowed struct {
	from    *image.RGBA
	columns []mean
	rows    [][]uint64 // Row y is at y % len(rows).
	next    int        // The first row that was not asked for.
	wide    []uint64   // A row with the old width.
	sums    []uint64   // A row of the result.
}

// advance adds the rows before end.
func (n *narrowed) advance(end int) {
	for ; n.next < end; n.next++ {
		row := &n.rows[n.next%len(n.rows)]
		if *row == nil {
			*row = make([]uint64, len(n.columns))
		}
		spread(n.wide, n.from.Pix[n.next*n.from.Stride:])
		for x, m := range n.columns {
			(*row)[x] = m.of(n.wide)
		}
	}
}

// write writes a row of the result: means of the rows.
func (n *narrowed) write(to []byte, m mean) {
	sums := n.sums
	for x := range sums {
		sums[x] = half
	}
	for k, weight := range m.weights {
		row := n.rows[(m.first+k)%len(n.rows)][:len(sums)]
		for x := range sums {
			sums[x] += row[x] * weight
		}
	}
	for x, sum := range sums {
		p := sum >> oneBits
		to[4*x], to[4*x+1], to[4*x+2], to[4*x+3] = byte(p), byte(p>>laneBits), byte(p>>(2*laneBits)), 0xff
	}
}

// spread puts a row of RGBA into lanes.
func spread(to []uint64, from []byte) {
	from = from[:4*len(to)]
	for x := range to {
		p := from[4*x:][:4]
		to[x] = uint64(p[0]) | uint64(p[1])<<laneBits | uint64(p[2])<<(2*laneBits)
	}
}
