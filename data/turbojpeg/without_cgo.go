//go:build !cgo

package turbojpeg

import (
	"fmt"
	"image"
)

// Library is never open in a program without cgo.
type Library struct{}

// Open returns an error: opening a library needs cgo.
func Open(...string) (*Library, error) {
	return nil, fmt.Errorf("turbojpeg: %w: the program was built with CGO_ENABLED=0", ErrNoLibrary)
}

// Name returns nothing.
func (*Library) Name() string { return "" }

// Decode refuses all images.
func (*Library) Decode([]byte, image.Point, func(*image.RGBA) error) error {
	return fmt.Errorf("turbojpeg: %w: %w", ErrRefused, ErrNoLibrary)
}
