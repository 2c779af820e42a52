package data

import (
	"fmt"
	"image"
	"image/color"
	"io"
	"sync"

	"gonbatch/data/turbojpeg"
)

// turbo opens libjpeg-turbo once.
var turbo = sync.OnceValues(func() (*turbojpeg.Library, error) { return turbojpeg.Open(turbojpeg.Names...) })

// JPEGDecoder says what ImageFolder decodes JPEGs with: libjpeg-turbo, or Go's image/jpeg, which
// takes three times as long, and why.
func JPEGDecoder() string {
	library, err := turbo()
	if err != nil {
		return fmt.Sprintf("image/jpeg: %v", err)
	}
	return "libjpeg-turbo: " + library.Name()
}

// forTurbo reports whether libjpeg-turbo decodes an image to the same colors as Go does. It doesn't
// convert CMYK, and has other rules for RGB.
func forTurbo(head image.Config, format string) bool {
	return format == "jpeg" && (head.ColorModel == color.YCbCrModel || head.ColorModel == color.GrayModel)
}

// decodeFast decodes a JPEG by libjpeg-turbo, from memory.
func (d decoder) decodeFast(file io.ReadSeeker, use func(image.Image) error) error {
	content, err := readAll(file)
	if err != nil {
		return err
	}
	return d.turbo.Decode(content, d.least(), func(decoded *image.RGBA) error { return use(decoded) })
}

// readAll reads a file from its beginning. One that is much larger than its image is refused, as
// libjpeg-turbo would do.
func readAll(file io.ReadSeeker) ([]byte, error) {
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, err
	}
	if size > maxPixels {
		return nil, fmt.Errorf("%w: it has %d bytes", turbojpeg.ErrRefused, size)
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	content := make([]byte, size)
	_, err = io.ReadFull(file, content)
	return content, err
}

// least is the size that a decoded image must cover, or zero for its full size.
func (d decoder) least() image.Point {
	if !d.Reduced || d.asFirst {
		return image.Point{}
	}
	return image.Pt(d.Width, d.Height)
}
