package idx

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"gonbatch/data"
	"gonbatch/internal/fetch"
	"gonbatch/internal/plural"
)

// Side is the side of an image in MNIST's layout, in pixels.
const Side = 28

// Set is a dataset in four files.
type Set struct {
	Package   string // Package names the dataset in messages: "mnist".
	Title     string // Title is the dataset's own name: "MNIST".
	Classes   int
	Mean, Std float32 // Mean and Std of the pixels, from 0 to 1.

	TestLabels, TrainLabels, TestImages, TrainImages File

	Addresses []string // Addresses have the compressed files; each ends in a slash.
	Fallback  Fallback // Fallback is used if the addresses fail.
}

// File is an IDX file: its name, size and SHA-256, and the size and SHA-256 of its compressed form,
// which has the same name with .gz.
type File struct {
	Name     string
	Size     int64
	SHA256   string
	GzSize   int64
	GzSHA256 string
}

// Files returns all files. The smallest are first, so an unreachable address shows at once.
func (s Set) Files() []File {
	return []File{s.TestLabels, s.TrainLabels, s.TestImages, s.TrainImages}
}

// Have reports whether dir has all files, by their sizes.
func (s Set) Have(dir string) bool {
	return !slices.ContainsFunc(s.Files(), func(f File) bool { return !fetch.Have(filepath.Join(dir, f.Name), f.Size) })
}

// Load reads the images for training and those for testing. The files must have the set's SHA-256.
func (s Set) Load(dir string) (train, test *data.Images, err error) {
	return s.loadBoth(dir, File.genuine)
}

// LoadAny is like Load for files of any size and content, as long as they are in MNIST's layout.
func (s Set) LoadAny(dir string) (train, test *data.Images, err error) {
	return s.loadBoth(dir, func(File, []byte) error { return nil })
}

// loadBoth reads both parts, and checks the content of each file.
func (s Set) loadBoth(dir string, check func(File, []byte) error) (train, test *data.Images, err error) {
	l := loader{s, dir, check}
	if train, err = l.load(s.Package+"-train", s.TrainImages, s.TrainLabels); err == nil {
		test, err = l.load(s.Package+"-test", s.TestImages, s.TestLabels)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", s.Package, err)
	}
	return train, test, nil
}

// loader reads files in a folder.
type loader struct {
	Set
	dir   string
	check func(File, []byte) error
}

func (l loader) load(name string, images, labels File) (*data.Images, error) {
	size, pixels, err := l.read(images, 3)
	if err != nil {
		return nil, err
	}
	if size[1] != Side || size[2] != Side {
		return nil, fmt.Errorf("%s has images of %dx%d pixels, not %dx%d", filepath.Join(l.dir, images.Name), size[1], size[2], Side, Side)
	}
	_, classOf, err := l.read(labels, 1)
	if err != nil {
		return nil, err
	}
	if len(classOf) != size[0] {
		return nil, fmt.Errorf("%s has %s, but %s has %s", filepath.Join(l.dir, images.Name), plural.Of(size[0], "image"), labels.Name, plural.Of(len(classOf), "label"))
	}
	set, err := data.NewImages(data.ImagesConfig{
		Name: name, Height: Side, Width: Side, Channels: 1, Classes: l.Classes,
		Pixels: pixels, Labels: classOf, Mean: []float32{l.Mean}, Std: []float32{l.Std},
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", l.dir, err)
	}
	return set, nil
}

func (l loader) read(f File, rank int) (size []int, values []uint8, err error) {
	path := filepath.Join(l.dir, f.Name)
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, fmt.Errorf("%w; %s.Fetch downloads it", err, l.Package)
	}
	if err := l.check(f, content); err != nil {
		return nil, nil, fmt.Errorf("%s is not %s's file: %w; remove it, and it is downloaded again", path, l.Title, err)
	}
	if size, values, err = parse(content, rank); err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return size, values, err
}

// genuine returns an error if the content is not the file's.
func (f File) genuine(content []byte) error {
	sum := sha256.Sum256(content)
	if got := hex.EncodeToString(sum[:]); got != f.SHA256 {
		return fmt.Errorf("it has SHA-256 %s, not %s", got, f.SHA256)
	}
	return nil
}
