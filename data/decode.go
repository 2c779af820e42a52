package data

import (
	"errors"
	"fmt"
	"image"
	_ "image/gif"  // The formats for image.Decode.
	_ "image/jpeg" // As above.
	_ "image/png"  // As above.
	"io"
	"os"

	"golang.org/x/image/draw"
)

// maxPixels is the size of the largest image that is decoded. Decoding it takes half a gigabyte.
const maxPixels = 1 << 27

// imageSize reads the size of an image.
func imageSize(path string) (size image.Point, err error) {
	err = withFile(path, func(file io.ReadSeeker) error {
		size, err = headerSize(file)
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

// headerSize returns the size of an image before it is decoded, and refuses one that would not fit
// into memory.
func headerSize(file io.Reader) (image.Point, error) {
	header, _, err := image.DecodeConfig(file)
	if err != nil {
		return image.Point{}, err
	}
	if header.Width < 1 || header.Height < 1 || header.Width > maxPixels/header.Height {
		return image.Point{}, fmt.Errorf("an image of %dx%d pixels: it must have from 1 to %d", header.Width, header.Height, maxPixels)
	}
	return image.Pt(header.Width, header.Height), nil
}

// readOne reads an image into the pixels of a batch.
func (f *Folder) readOne(pixels []float32, path string) error {
	return withFile(path, func(file io.ReadSeeker) error {
		if _, err := headerSize(file); err != nil {
			return err
		}
		if _, err := file.Seek(0, io.SeekStart); err != nil {
			return err
		}
		decoded, _, err := image.Decode(file)
		if err != nil {
			return err
		}
		fitted, err := f.fitted(decoded)
		if err != nil {
			return err
		}
		fill(pixels, fitted, f.config.Gray)
		return nil
	})
}

// fitted returns an image in the size of the dataset, on black.
func (f *Folder) fitted(from image.Image) (*image.RGBA, error) {
	to := image.NewRGBA(image.Rect(0, 0, f.config.Width, f.config.Height))
	bounds := from.Bounds()
	switch {
	case bounds.Size() == to.Rect.Size():
		draw.Draw(to, to.Rect, from, bounds.Min, draw.Src)
	case f.asFirst:
		return nil, fmt.Errorf("an image of %dx%d pixels, the first one has %dx%d: set Height and Width to scale all images to one size", bounds.Dx(), bounds.Dy(), f.config.Width, f.config.Height)
	default:
		draw.BiLinear.Scale(to, to.Rect, from, middle(bounds, to.Rect.Size()), draw.Src, nil)
	}
	return to, nil
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
	for i := 0; i < len(from.Pix); i += 4 {
		r, g, b := float32(from.Pix[i])/255, float32(from.Pix[i+1])/255, float32(from.Pix[i+2])/255
		if gray {
			pixels[i/4] = 0.299*r + 0.587*g + 0.114*b // ITU-R BT.601, as in JPEG.
			continue
		}
		pixels[i/4*3], pixels[i/4*3+1], pixels[i/4*3+2] = r, g, b
	}
}
