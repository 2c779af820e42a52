package turbojpeg

/*
#include "library.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"image"
	"runtime"
	"unsafe"
)

// The values of turbojpeg.h for the colors of JPEGs that are decoded.
const (
	colorsYCbCr = 1
	colorsGray  = 2
)

// decoder is a handle of the library, with memory for an image. Only one goroutine may use it.
type decoder struct {
	functions *C.struct_gb_turbojpeg
	handle    unsafe.Pointer
	pixels    []byte
	cleanup   runtime.Cleanup // Frees the handle if the pool drops the decoder.
}

// Decode decodes a JPEG and calls use with its pixels, which are valid until use returns. It
// returns use's error.
//
// If least is not zero, the image has 1/2, 1/4 or 1/8 of its size where that is at least as wide
// and as high as least. This saves most of the time.
func (l *Library) Decode(jpeg []byte, least image.Point, use func(*image.RGBA) error) error {
	if len(jpeg) == 0 {
		return fmt.Errorf("turbojpeg: %w: it is empty", ErrRefused)
	}
	d, err := l.decoder()
	if err != nil {
		return err
	}
	decoded, err := d.decode(jpeg, least)
	if err != nil {
		d.free() // What it has read of a broken file would stay in it, and break the next one.
		return fmt.Errorf("turbojpeg: %w: %w", ErrRefused, err)
	}
	defer l.decoders.Put(d)
	return use(decoded)
}

// decoder returns one that no other goroutine uses.
func (l *Library) decoder() (*decoder, error) {
	if d, ok := l.decoders.Get().(*decoder); ok {
		return d, nil
	}
	handle := C.gb_turbojpeg_new(l.functions)
	if handle == nil {
		return nil, fmt.Errorf("turbojpeg: %w: no memory for a decoder", ErrRefused)
	}
	d := &decoder{functions: l.functions, handle: handle}
	d.cleanup = runtime.AddCleanup(d, func(handle unsafe.Pointer) { C.gb_turbojpeg_free(l.functions, handle) }, handle)
	return d, nil
}

// free frees the handle of a decoder that is not in the pool.
func (d *decoder) free() {
	d.cleanup.Stop()
	C.gb_turbojpeg_free(d.functions, d.handle)
}

func (d *decoder) decode(jpeg []byte, least image.Point) (*image.RGBA, error) {
	data, n := unsafe.Pointer(&jpeg[0]), C.size_t(len(jpeg))
	var header C.struct_gb_turbojpeg_header
	if C.gb_turbojpeg_read_header(d.functions, d.handle, data, n, &header) != 0 {
		return nil, d.err()
	}
	if header.colors != colorsYCbCr && header.colors != colorsGray {
		return nil, fmt.Errorf("its colors are of kind %d", header.colors)
	}
	size := reduced(image.Pt(int(header.width), int(header.height)), least)
	decoded := d.image(size)
	if C.gb_turbojpeg_decode(d.functions, d.handle, data, n, unsafe.Pointer(&decoded.Pix[0]), C.int(size.X), C.int(size.Y)) != 0 {
		return nil, d.err()
	}
	return decoded, nil
}

// kept is the most memory that a decoder keeps between images: 64 MB.
const kept = 64 << 20

// image returns an image in the memory of the decoder.
func (d *decoder) image(size image.Point) *image.RGBA {
	n := 4 * size.X * size.Y
	pixels := d.pixels
	if n > cap(pixels) {
		pixels = make([]byte, n)
	}
	if n <= kept {
		d.pixels = pixels
	}
	return &image.RGBA{Pix: pixels[:n], Stride: 4 * size.X, Rect: image.Rectangle{Max: size}}
}

func (d *decoder) err() error {
	return errors.New(C.GoString(C.gb_turbojpeg_error(d.functions, d.handle)))
}

// reduced returns the smallest size that libjpeg-turbo decodes quickly and that covers least.
func reduced(size, least image.Point) image.Point {
	if least == (image.Point{}) {
		return size
	}
	for _, part := range []int{8, 4, 2} {
		smaller := size.Add(image.Pt(part-1, part-1)).Div(part)
		if smaller.X >= least.X && smaller.Y >= least.Y {
			return smaller
		}
	}
	return size
}
