package data

import (
	"fmt"
	"image"
	"image/color"
	"math"

	"github.com/gomlx/gomlx/core/tensors"
)

// Grid draws a batch of images, [n, height, width, 1] or [n, height, width, 3] float32 from 0
// (black) to 1, as one image with this many columns. A gray line of one pixel separates them.
func Grid(batch *tensors.Tensor, columns int) (image.Image, error) {
	dims := batch.Shape().Dimensions
	if len(dims) != 4 || dims[3] != 1 && dims[3] != 3 || batch.Size() == 0 || columns < 1 {
		return nil, fmt.Errorf("data: draw images of shape %s in %d columns: the shape must be [n, height, width, 1 or 3] with no axis of 0, the columns at least 1", batch.Shape(), columns)
	}
	values, err := tensors.CopyFlatData[float32](batch)
	if err != nil {
		return nil, fmt.Errorf("data: draw images of shape %s: %w", batch.Shape(), err)
	}
	n, height, width, channels := dims[0], dims[1], dims[2], dims[3]
	columns = min(columns, n)
	rows := (n + columns - 1) / columns
	grid := image.NewNRGBA(image.Rect(0, 0, columns*(width+1)-1, rows*(height+1)-1))
	for i := range grid.Pix {
		grid.Pix[i] = 0x80 | byte(i%4/3*0x7f) // Gray, opaque.
	}
	for i := range n {
		left, top := i%columns*(width+1), i/columns*(height+1)
		for y := range height {
			for x := range width {
				pixel := values[((i*height+y)*width+x)*channels:][:channels]
				grid.SetNRGBA(left+x, top+y, color.NRGBA{level(pixel[0]), level(pixel[1%channels]), level(pixel[2%channels]), 0xff})
			}
		}
	}
	return grid, nil
}

// level converts a value to a byte. NaN becomes black.
func level(value float32) byte {
	if value != value {
		return 0
	}
	return byte(math.Round(255 * float64(min(max(value, 0), 1))))
}
