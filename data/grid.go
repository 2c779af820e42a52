package data

import (
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"math"
	"strings"
	"sync"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"

	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/internal/plural"
)

// Grid draws a batch of images, [n, height, width, 1] or [n, height, width, 3] float32 from 0
// (black) to 1, as one image with this many columns. A gray line of one pixel separates them.
func Grid(batch *tensors.Tensor, columns int) (image.Image, error) {
	return TitledGrid(batch, columns, GridText{})
}

// TitledGrid is like Grid, and writes text above the grid and above its images. Images that are
// narrower than the longest title are enlarged, each pixel to a square, until they are as wide as
// it, or 100 pixels wide or high.
func TitledGrid(batch *tensors.Tensor, columns int, text GridText) (image.Image, error) {
	dims := batch.Shape().Dimensions
	if len(dims) != 4 || dims[3] != 1 && dims[3] != 3 || batch.Size() == 0 || columns < 1 {
		return nil, fmt.Errorf("data: draw images of shape %s in %d columns: the shape must be [n, height, width, 1 or 3] with no axis of 0, the columns at least 1", batch.Shape(), columns)
	}
	values, err := tensors.CopyFlatData[float32](batch)
	if err != nil {
		return nil, fmt.Errorf("data: draw images of shape %s: %w", batch.Shape(), err)
	}
	if n := len(text.Titles); n > 0 && n != dims[0] {
		return nil, fmt.Errorf("data: draw %s with %s: give each image a title, which may be empty, or give none", plural.Of(dims[0], "image"), plural.Of(n, "title"))
	}
	pen, err := newPen()
	if err != nil {
		return nil, fmt.Errorf("data: draw titles: %w", err)
	}
	g := newGrid(dims, min(columns, dims[0]), text, pen)
	g.write(text, pen)
	for i := range dims[0] {
		size := len(values) / dims[0]
		g.draw(i, values[i*size:][:size])
	}
	return g.picture, nil
}

// grid is a picture of images in rows and columns, with all lengths in pixels.
type grid struct {
	picture                 *image.NRGBA
	columns                 int
	height, width, channels int // Of an image.
	zoom                    int // An image's pixel is a square of this size.
	cell                    image.Point
	title, caption          int // The heights of the text above an image, and above the grid.
}

// widened is the width or height up to which images are enlarged to fit their titles.
const widened = 100

var separator = color.NRGBA{0x80, 0x80, 0x80, 0xff}

// newGrid returns an empty grid for images of shape [n, height, width, channels].
func newGrid(dims []int, columns int, text GridText, pen *pen) *grid {
	g := &grid{columns: columns, height: dims[1], width: dims[2], channels: dims[3], zoom: 1}
	if len(text.Titles) > 0 {
		g.title = lineHeight
	}
	if text.Caption != "" {
		g.caption = lineHeight
	}
	longest := 0
	for _, title := range text.Titles {
		longest = max(longest, pen.width(title))
	}
	for g.width*g.zoom < min(longest, widened) && g.height*g.zoom < widened {
		g.zoom++
	}
	g.cell = image.Pt(max(g.width*g.zoom, longest), g.title+g.height*g.zoom)
	rows := (dims[0] + columns - 1) / columns
	g.picture = image.NewNRGBA(image.Rect(0, 0, max(columns*(g.cell.X+1)-1, pen.width(text.Caption)), g.caption+rows*(g.cell.Y+1)-1))
	draw.Draw(g.picture, g.picture.Bounds(), image.NewUniform(separator), image.Point{}, draw.Src)
	return g
}

// place returns the left upper corner of a cell.
func (g *grid) place(i int) image.Point {
	return image.Pt(i%g.columns*(g.cell.X+1), g.caption+i/g.columns*(g.cell.Y+1))
}

// write writes the caption and the titles.
func (g *grid) write(text GridText, pen *pen) {
	if text.Caption != "" {
		pen.write(g.picture, image.Rect(0, 0, g.picture.Rect.Dx(), g.caption), text.Caption)
	}
	for i, title := range text.Titles {
		at := g.place(i)
		pen.write(g.picture, image.Rectangle{at, at.Add(image.Pt(g.cell.X, g.title))}, title)
	}
}

// draw draws an image in the middle of its cell.
func (g *grid) draw(i int, values []float32) {
	at := g.place(i).Add(image.Pt((g.cell.X-g.width*g.zoom)/2, g.title))
	for y := range g.height * g.zoom {
		for x := range g.width * g.zoom {
			pixel := values[(y/g.zoom*g.width+x/g.zoom)*g.channels:][:g.channels]
			g.picture.SetNRGBA(at.X+x, at.Y+y, color.NRGBA{level(pixel[0]), level(pixel[1%g.channels]), level(pixel[2%g.channels]), 0xff})
		}
	}
}

// level converts a value to a byte. NaN becomes black.
func level(value float32) byte {
	if value != value {
		return 0
	}
	return byte(math.Round(255 * float64(min(max(value, 0), 1))))
}

// GridText is the text of a TitledGrid, in the Go font, which has Latin, Greek and Cyrillic
// letters.
type GridText struct {
	// Caption is a line above the grid; "" for none.
	Caption string
	// Titles are lines above the images, in their order: one for each, or none at all.
	Titles []string
}

const (
	fontSize   = 12 // Pixels.
	lineHeight = 16
	baseline   = 12 // Below the top of a line.
	margin     = 2  // On the left and the right of a text.
)

// goFont is parsed once.
var goFont = sync.OnceValues(func() (*opentype.Font, error) { return opentype.Parse(goregular.TTF) })

// pen writes lines of text, black on white. It must be used by one goroutine at a time.
type pen struct{ face font.Face }

func newPen() (*pen, error) {
	parsed, err := goFont()
	if err != nil {
		return nil, err
	}
	face, err := opentype.NewFace(parsed, &opentype.FaceOptions{Size: fontSize, DPI: 72, Hinting: font.HintingFull})
	if err != nil {
		return nil, err
	}
	return &pen{face}, nil
}

// width returns the width of a text with its margins; 0 if it is empty.
func (p *pen) width(text string) int {
	if text == "" {
		return 0
	}
	return font.MeasureString(p.face, oneLine(text)).Ceil() + 2*margin
}

// write fills a rectangle with white, and writes a text in the middle of it.
func (p *pen) write(on draw.Image, in image.Rectangle, text string) {
	draw.Draw(on, in, image.White, image.Point{}, draw.Src)
	left := in.Min.X + (in.Dx()-p.width(text))/2 + margin
	drawer := font.Drawer{Dst: on, Src: image.Black, Face: p.face, Dot: fixed.P(left, in.Min.Y+baseline)}
	drawer.DrawString(oneLine(text))
}

// oneLine replaces line breaks and runs of spaces by a space.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
