package data

import (
	"image"
	"image/draw"
	"strings"
	"sync"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
)

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
