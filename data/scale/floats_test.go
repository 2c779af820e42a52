package scale_test

import (
	"image"
	"math/rand/v2"
	"testing"

	"gonbatch/data/scale"
)

// TestFloats compares images of random sizes with those that Bilinear makes of the same bytes.
func TestFloats(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 3))
	for range 200 {
		old, size := image.Pt(1+random.IntN(60), 1+random.IntN(60)), image.Pt(1+random.IntN(60), 1+random.IntN(60))
		from, to := image.NewRGBA(image.Rectangle{Max: old}), image.NewRGBA(image.Rectangle{Max: size})
		numbers, got := make([]float32, 3*old.X*old.Y), make([]float32, 3*size.X*size.Y)
		for i := range numbers {
			from.Pix[4*(i/3)+i%3] = byte(random.IntN(256))
			numbers[i] = float32(from.Pix[4*(i/3)+i%3])
		}
		scale.Bilinear(to, from)
		scale.NewFloats(size, old).Bilinear(got, numbers, 3)
		for i, value := range got {
			if d := value - float32(to.Pix[4*(i/3)+i%3]); d < -1.6 || d > 1.6 {
				t.Fatalf("%v to %v: number %d is %g, want about %d", old, size, i, value, to.Pix[4*(i/3)+i%3])
			}
		}
	}
}
