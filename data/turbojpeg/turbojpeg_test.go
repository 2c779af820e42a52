package turbojpeg_test

import (
	"bytes"
	"errors"
	"image"
	"image/color"
	"image/jpeg"
	"runtime"
	"strings"
	"sync"
	"testing"

	"gonbatch/data/turbojpeg"
	"gonbatch/internal/machine"
)

func library(t *testing.T) *turbojpeg.Library {
	t.Helper()
	l, err := turbojpeg.Open(turbojpeg.Names...)
	if err != nil {
		machine.Lacks(t, err.Error())
	}
	return l
}

// gray returns a JPEG of one shade.
func gray(t *testing.T, width, height int, shade uint8) []byte {
	t.Helper()
	var file bytes.Buffer
	im := image.NewPaletted(image.Rect(0, 0, width, height), color.Palette{color.Gray{Y: shade}})
	if err := jpeg.Encode(&file, im, &jpeg.Options{Quality: 100}); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// TestDecodeSizes: an image is decoded at the smallest size that covers the one asked for.
func TestDecodeSizes(t *testing.T) {
	l, content := library(t), gray(t, 101, 61, 70)
	for least, want := range map[image.Point]image.Point{
		{}: {X: 101, Y: 61}, {X: 101, Y: 61}: {X: 101, Y: 61}, {X: 1000, Y: 1}: {X: 101, Y: 61}, {X: 52, Y: 31}: {X: 101, Y: 61},
		{X: 51, Y: 31}: {X: 51, Y: 31}, {X: 26, Y: 16}: {X: 26, Y: 16}, {X: 27, Y: 2}: {X: 51, Y: 31}, {X: 13, Y: 8}: {X: 13, Y: 8}, {X: 1, Y: 1}: {X: 13, Y: 8},
	} {
		err := l.Decode(content, least, func(got *image.RGBA) error {
			if got.Rect.Size() != want {
				t.Errorf("at least %v: got %v, want %v", least, got.Rect, want)
			}
			for y := range got.Rect.Dy() {
				for x := range got.Rect.Dx() {
					if c := got.RGBAAt(x, y); c != (color.RGBA{70, 70, 70, 255}) {
						t.Fatalf("at least %v: the pixel at %d, %d is %v", least, x, y, c)
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// TestDecodeAtOnce: goroutines decode images of many sizes concurrently, good and broken ones, and
// decoders come and go.
func TestDecodeAtOnce(t *testing.T) {
	l := library(t)
	var group sync.WaitGroup
	for shade := range uint8(8) {
		content := gray(t, 1+30*int(shade), 90-10*int(shade), 20*shade)
		group.Go(func() {
			for i := range 100 {
				if err := l.Decode(content[:len(content)/2], image.Point{}, nil); !errors.Is(err, turbojpeg.ErrRefused) {
					t.Errorf("half a file: %v", err)
				}
				err := l.Decode(content, image.Point{}, func(got *image.RGBA) error {
					runtime.Gosched()
					if c := got.RGBAAt(0, got.Rect.Dy()-1); c.G != 20*shade {
						t.Errorf("got %v, want %d", c, 20*shade)
					}
					return nil
				})
				if err != nil {
					t.Error(err)
				}
				if i%10 == 0 {
					runtime.GC() // The pool of decoders is emptied by the second one.
				}
			}
		})
	}
	group.Wait()
}

func TestDecodeErrors(t *testing.T) {
	l := library(t)
	for name, content := range map[string][]byte{"empty": nil, "text": []byte("text"), "a start": {0xff, 0xd8, 0xff}} {
		if err := l.Decode(content, image.Point{}, nil); !errors.Is(err, turbojpeg.ErrRefused) {
			t.Errorf("%s: %v", name, err)
		}
	}
	mine := errors.New("mine")
	if err := l.Decode(gray(t, 8, 8, 0), image.Point{}, func(*image.RGBA) error { return mine }); err != mine { //nolint:errorlint // Unchanged.
		t.Errorf("an error of use: %v", err)
	}
}

// TestOpenErrors: the error says what was tried, and how to install the library.
func TestOpenErrors(t *testing.T) {
	_, err := turbojpeg.Open("/nowhere/libturbojpeg.so", "libc.so.6")
	if !errors.Is(err, turbojpeg.ErrNoLibrary) {
		t.Fatal(err)
	}
	for _, want := range []string{"/nowhere/libturbojpeg.so", "no symbol tjInitDecompress", "apt-get install libturbojpeg0", "LD_LIBRARY_PATH"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v: it must say %q", err, want)
		}
	}
}
