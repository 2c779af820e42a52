// Package cifar10 is the CIFAR-10 set of photos: 50,000 images for training and 10,000 for testing,
// each 32x32 pixels in color, in ten classes (Krizhevsky, Learning multiple layers of features from
// tiny images, 2009).
//
// It downloads the author's archive for C programs, from a mirror if the author's site fails, and
// checks its SHA-256. If you have the files already, put cifar-10-binary.tar.gz, or the folder
// cifar-10-batches-bin that it contains, into Dir.
//
//	train, test, err := cifar10.Load(ctx)
//	inputs, labels, err := train.Batch([]int{0, 1, 2}) // [3, 32, 32, 3] float32, [3, 1] int32
package cifar10

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"

	"gonbatch/data"
	"gonbatch/data/cifar"
	"gonbatch/internal/fetch"
)

// set is as its author published it: https://www.cs.toronto.edu/~kriz/cifar.html. That page gives
// the archive's MD5, c32a1d4ab5d03f1284b67883e8d87530.
var set = cifar.Set{
	Package: "cifar10", Title: "CIFAR-10",
	Archive: fetch.Source{
		Name: "cifar-10-binary.tar.gz", Size: 170052171,
		SHA256: "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
		URLs: []string{
			"https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
			"https://mindspore-website.obs.cn-north-4.myhuaweicloud.com/notebook/datasets/cifar-10-binary.tar.gz", // Of MindSpore's tutorials.
			"https://storage.googleapis.com/s4tf-hosted-binaries/datasets/CIFAR10/cifar-10-binary.tar.gz",         // Of Swift for TensorFlow.
		},
	},
	Folder: "cifar-10-batches-bin",
	Train:  []string{"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin"},
	Test:   []string{"test_batch.bin"},
	Labels: 1, Classes: 10,
	Mean: []float32{0.4914, 0.4822, 0.4465}, Std: []float32{0.2470, 0.2435, 0.2616},
}

// Classes returns the names of the classes, by label.
func Classes() []string {
	return []string{"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"}
}

// Mean returns the means of all red, green and blue training pixels, from 0 to 1: the values in
// common use.
func Mean() []float32 { return slices.Clone(set.Mean) }

// Std returns the standard deviations of all red, green and blue training pixels, likewise.
func Std() []float32 { return slices.Clone(set.Std) }

// Dir returns the folder of the files, inside the folder of all datasets.
func Dir(getenv func(string) string) string { return filepath.Join(data.Dir(getenv), set.Package) }

// Fetch makes sure that dir has the dataset. It uses the files or the archive that are there, and
// otherwise downloads the archive, of 170 MB. It blocks. Several goroutines and processes may call
// it concurrently: one downloads, the others wait. progress may be nil.
func Fetch(ctx context.Context, dir string, progress io.Writer) error {
	return set.Fetch(ctx, dir, progress)
}

// Load downloads the files to Dir if they are missing, and reads them. Pixels are normalized with
// Mean and Std. The progress of a download goes to standard error. Several processes may call Load
// concurrently.
func Load(ctx context.Context) (train, test *data.Images, err error) {
	dir := Dir(os.Getenv)
	if err := Fetch(ctx, dir, os.Stderr); err != nil {
		return nil, nil, err
	}
	return set.Load(dir)
}

// LoadFrom reads the files from dir, or from the folder cifar-10-batches-bin in it. It downloads
// nothing. The files may have fewer images than CIFAR-10's.
func LoadFrom(dir string) (train, test *data.Images, err error) { return set.Load(dir) }
