package logger

import (
	"image"
	"image/draw"
	"maps"
	"slices"
)

// forward passes records on to other loggers through the function pass. It copies what the caller
// may change.
type forward struct {
	pass func(record func(Logger) error) error
}

// Params passes hyper-parameters on.
func (f forward) Params(params map[string]any) error {
	params = maps.Clone(params)
	return f.pass(func(l Logger) error { return l.Params(params) })
}

// Scalars passes metrics at a step on.
func (f forward) Scalars(step int64, values map[string]float64) error {
	values = maps.Clone(values)
	return f.pass(func(l Logger) error { return l.Scalars(step, values) })
}

// Image passes a copy of an image on.
func (f forward) Image(step int64, name string, img image.Image) error {
	img = cloneImage(img)
	return f.pass(func(l Logger) error { return l.Image(step, name, img) })
}

// Histogram passes the values of a distribution on.
func (f forward) Histogram(step int64, name string, values []float64) error {
	values = slices.Clone(values)
	return f.pass(func(l Logger) error { return l.Histogram(step, name, values) })
}

// Artifact passes a file on.
func (f forward) Artifact(path string) error {
	return f.pass(func(l Logger) error { return l.Artifact(path) })
}

// Rewind rewinds the loggers that are Rewinders.
func (f forward) Rewind(step int64) error {
	return f.pass(func(l Logger) error {
		if r, ok := l.(Rewinder); ok {
			return r.Rewind(step)
		}
		return nil
	})
}

// Model passes a trained model on to the loggers that record models.
func (f forward) Model(name, weights string) error {
	return f.pass(func(l Logger) error {
		if m, ok := l.(ModelLogger); ok {
			return m.Model(name, weights)
		}
		return nil
	})
}

// cloneImage copies an image, because the training may draw on it again.
func cloneImage(img image.Image) image.Image {
	var clone draw.Image = image.NewNRGBA(img.Bounds())
	switch img.(type) {
	case *image.Gray:
		clone = image.NewGray(img.Bounds())
	case *image.Gray16:
		clone = image.NewGray16(img.Bounds())
	}
	draw.Draw(clone, clone.Bounds(), img, img.Bounds().Min, draw.Src)
	return clone
}
