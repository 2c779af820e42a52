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
	height := from.Rect.Dy()
	wide, narrowed := make([]uint64, from.Rect.Dx()), make([]uint64, len(columns)*height) // The latter column by column.
	for y := range height {
		spread(wide, from.Pix[y*from.Stride:])
		for x, m := range columns {
			narrowed[x*height+y] = m.of(wide)
		}
	}
	for y, m := range rows {
		row := to.Pix[y*to.Stride:][:4*len(columns)]
		for x := range columns {
			p := m.of(narrowed[x*height:][:height])
			row[4*x], row[4*x+1], row[4*x+2], row[4*x+3] = byte(p), byte(p>>laneBits), byte(p>>(2*laneBits)), 0xff
		}
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
