package scale_test

import (
	"bytes"
	"image"
	"math/rand/v2"
	"testing"

	"golang.org/x/image/draw"

	"gonbatch/data/scale"
)

// TestBilinear compares images of random sizes with golang.org/x/image/draw.
func TestBilinear(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		from := image.NewRGBA(image.Rect(0, 0, 1+random.IntN(90), 1+random.IntN(90)).Add(image.Pt(random.IntN(9), random.IntN(9))))
		for i := range from.Pix {
			from.Pix[i] = byte(random.IntN(256)) | byte(i%4/3*0xff)
		}
		corner := from.Rect.Min.Add(image.Pt(random.IntN(from.Rect.Dx()), random.IntN(from.Rect.Dy())))
		part := image.Rectangle{Min: corner, Max: corner.Add(image.Pt(1+random.IntN(from.Rect.Max.X-corner.X), 1+random.IntN(from.Rect.Max.Y-corner.Y)))}
		got := image.NewRGBA(image.Rect(0, 0, 1+random.IntN(90), 1+random.IntN(90)))
		want := image.NewRGBA(got.Rect)
		scale.Bilinear(got, from.SubImage(part).(*image.RGBA))
		scale.Plain(want, from.SubImage(part).(*image.RGBA))
		if !bytes.Equal(got.Pix, want.Pix) {
			t.Fatalf("%v of %v to %v: the bytes depend on the processor", part, from.Rect, got.Rect)
		}
		draw.BiLinear.Scale(want, want.Rect, from, part, draw.Src, nil)
		for i := range got.Pix {
			if d := int(got.Pix[i]) - int(want.Pix[i]); d < -2 || d > 2 {
				t.Fatalf("%v of %v to %v: byte %d is %d, want %d", part, from.Rect, got.Rect, i, got.Pix[i], want.Pix[i])
			}
		}
	}
}

// TestBilinearKeepsColors: an image of one color keeps it exactly, however many pixels a new one
// covers.
func TestBilinearKeepsColors(t *testing.T) {
	for _, value := range []byte{0, 1, 127, 255} {
		from := image.NewRGBA(image.Rect(0, 0, 20000, 3))
		for i := range from.Pix {
			from.Pix[i] = value
		}
		to := image.NewRGBA(image.Rect(0, 0, 2, 70))
		scale.Bilinear(to, from)
		for i, got := range to.Pix {
			if want := value | byte(i%4/3*0xff); got != want {
				t.Fatalf("byte %d of an image of %d is %d", i, value, got)
			}
		}
	}
}

// BenchmarkBilinear scales a photo of 375x375 pixels to 224x224.
func BenchmarkBilinear(b *testing.B) {
	from, to := image.NewRGBA(image.Rect(0, 0, 375, 375)), image.NewRGBA(image.Rect(0, 0, 224, 224))
	for name, bilinear := range map[string]func(to, from *image.RGBA){"here": scale.Bilinear, "plain": scale.Plain} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				bilinear(to, from)
			}
		})
	}
}
