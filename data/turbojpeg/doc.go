// Package turbojpeg decodes JPEGs with the system's libjpeg-turbo, which takes a quarter of the
// time of Go's package image/jpeg. The library is opened at run time: a program needs neither its
// header nor, if the caller falls back to image/jpeg, the library.
//
//	library, err := turbojpeg.Open(turbojpeg.Names...)
//	if err != nil { ... }
//	err = library.Decode(content, image.Point{}, func(pixels *image.RGBA) error { ... })
//	if errors.Is(err, turbojpeg.ErrRefused) { ... } // Decode it by image/jpeg.
//
// It is not a binding: it decodes whole images to RGBA, and refuses each one that image/jpeg might
// refuse or show in other colors.
package turbojpeg

import "errors"

// Names are the sonames of the library: on Linux, in its development package, and on macOS.
var Names = []string{"libturbojpeg.so.0", "libturbojpeg.so", "libturbojpeg.dylib"}

// ErrNoLibrary is in the chain of Open's error if the library could not be opened.
var ErrNoLibrary = errors.New("libjpeg-turbo could not be opened")

// ErrRefused is in the chain of Decode's error if the library refuses an image, or has a warning:
// libjpeg-turbo would continue after broken data, and fill the rest of the image with gray.
var ErrRefused = errors.New("libjpeg-turbo refuses the image")
