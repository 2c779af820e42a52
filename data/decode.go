package data

import (
	"errors"
	"fmt"
	"image"
	"image/draw"
	_ "image/gif"  // The formats for image.Decode.
	_ "image/jpeg" // As above.
	_ "image/png"  // As above.
	"io"
	"os"

	"gonbatch/data/scale"
	"gonbatch/data/turbojpeg"
	"gonbatch/internal/plural"
)

// maxPixels is the size of the largest image that is decoded. Decoding it takes half a gigabyte.
const maxPixels = 1 << 27

// imageSize reads the size of an image.
func imageSize(path string) (size image.Point, err error) {
	err = withFile(path, func(file io.ReadSeeker) error {
		head, _, err := readHeader(file)
		size = image.Pt(head.Width, head.Height)
		return err
	})
	return size, err
}

func withFile(path string, use func(io.ReadSeeker) error) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	if err := errors.Join(use(file), file.Close()); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// readHeader reads the colors, the size and the format of an image. It refuses one that would not
// fit into memory.
func readHeader(file io.ReadSeeker) (head image.Config, format string, err error) {
	head, format, err = image.DecodeConfig(file)
	if err != nil {
		return head, format, explained(err, file)
	}
	if head.Width < 1 || head.Height < 1 || head.Width > maxPixels/head.Height {
		err = fmt.Errorf("an image of %dx%d pixels: it must have from 1 to %d", head.Width, head.Height, maxPixels)
	}
	return head, format, err
}

// ImageDecoder decodes images of any size to one size, as ImageFolder does, for datasets whose
// images are elsewhere. It may be used concurrently.
//
//	decoder := data.ImageDecoder{Height: 64, Width: 64}
//	pixels := make([]float32, 64*64*decoder.Channels())
//	err := decoder.Decode(pixels, bytes.NewReader(content))
type ImageDecoder struct {
	// Height, Width, Gray and Reduced are those of FolderConfig; the size is required.
	Height, Width int
	Gray, Reduced bool
}

// Channels returns the number of channels: 1 or 3.
func (d ImageDecoder) Channels() int {
	if d.Gray {
		return 1
	}
	return 3
}

// Decode writes the pixels of a JPEG, a PNG or a GIF, from 0 to 1, row by row, channels last.
// pixels has room for just one image.
func (d ImageDecoder) Decode(pixels []float32, image io.ReadSeeker) error {
	library, _ := turbo() // Without it, image/jpeg does.
	if size := d.Height * d.Width * d.Channels(); d.Height < 1 || d.Width < 1 || len(pixels) != size {
		return fmt.Errorf("data: decode an image of %dx%dx%d to %s: it has %d", d.Height, d.Width, d.Channels(), plural.Of(len(pixels), "number"), size)
	}
	return decoder{ImageDecoder: d, turbo: library}.read(pixels, image)
}

// decoder is an ImageDecoder of a dataset.
type decoder struct {
	ImageDecoder
	asFirst bool               // All images must have the size of the first one.
	turbo   *turbojpeg.Library // Nil: JPEGs are decoded by image/jpeg.
}

// read reads an image into the pixels of a batch.
func (d decoder) read(pixels []float32, file io.ReadSeeker) error {
	head, format, err := readHeader(file)
	if err != nil {
		return err
	}
	return d.decode(file, d.turbo != nil && forTurbo(head, format), func(decoded image.Image) error {
		fitted, err := d.fitted(decoded)
		if err == nil {
			fill(pixels, fitted, d.Gray)
		}
		return err
	})
}

// decode calls use with an image that is valid until use returns. Where libjpeg-turbo refuses an
// image, Go's packages say whether it can be read, so this doesn't depend on the decoder.
func (d decoder) decode(file io.ReadSeeker, fast bool, use func(image.Image) error) error {
	if fast {
		if err := d.decodeFast(file, use); !errors.Is(err, turbojpeg.ErrRefused) {
			return err
		}
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	decoded, _, err := image.Decode(file)
	if err != nil {
		return explained(err, file)
	}
	return use(decoded)
}

// fitted returns an image in the size of the dataset, on black.
func (d decoder) fitted(from image.Image) (*image.RGBA, error) {
	size, bounds := image.Pt(d.Width, d.Height), from.Bounds()
	if bounds.Size() == size {
		return onBlack(from, bounds), nil
	}
	if d.asFirst {
		return nil, fmt.Errorf("an image of %dx%d pixels, the first one has %dx%d: set Height and Width to scale all images to one size", bounds.Dx(), bounds.Dy(), size.X, size.Y)
	}
	to := image.NewRGBA(image.Rectangle{Max: size})
	scale.Bilinear(to, onBlack(from, middle(bounds, size)))
	return to, nil
}

// onBlack returns a part of an image.
func onBlack(from image.Image, part image.Rectangle) *image.RGBA {
	if from, ok := from.(*image.RGBA); ok {
		return from.SubImage(part).(*image.RGBA)
	}
	to := image.NewRGBA(image.Rectangle{Max: part.Size()})
	draw.Draw(to, to.Rect, from, part.Min, draw.Src)
	return to
}

// middle returns the largest centered part of an image that has the proportions of a size.
func middle(bounds image.Rectangle, size image.Point) image.Rectangle {
	width, height := bounds.Dx(), bounds.Dy()
	if width*size.Y > height*size.X {
		width = max(1, (height*size.X+size.Y/2)/size.Y)
	} else {
		height = max(1, (width*size.Y+size.X/2)/size.X)
	}
	corner := bounds.Min.Add(image.Pt((bounds.Dx()-width)/2, (bounds.Dy()-height)/2))
	return image.Rectangle{Min: corner, Max: corner.Add(image.Pt(width, height))}
}

// fill writes the pixels of an image as numbers from 0 to 1.
func fill(pixels []float32, from *image.RGBA, gray bool) {
	size := from.Rect.Size()
	for y := range size.Y {
		row := from.Pix[y*from.Stride:][:4*size.X]
		if gray {
			fillGray(pixels[y*size.X:][:size.X], row)
		} else {
			fillColors(pixels[3*y*size.X:][:3*size.X], row)
		}
	}
}

func fillColors(to []float32, row []byte) {
	for ; len(row) >= 4 && len(to) >= 3; row, to = row[4:], to[3:] {
		to[0], to[1], to[2] = fraction[row[0]], fraction[row[1]], fraction[row[2]]
	}
}

func fillGray(to []float32, row []byte) {
	for x := range to {
		p := row[4*x:][:3]
		to[x] = 0.299*fraction[p[0]] + 0.587*fraction[p[1]] + 0.114*fraction[p[2]] // ITU-R BT.601, as in JPEG.
	}
}

// fraction has n/255 for each byte.
var fraction = func() (values [256]float32) {
	for i := range values {
		values[i] = float32(i) / 255
	}
	return values
}()
