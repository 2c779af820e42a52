package idx

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
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

// The files of MNIST, whose names and sizes its successors have too.
var (
	TrainImages = File{Name: "train-images-idx3-ubyte", Size: 16 + 60_000*Side*Side}
	TrainLabels = File{Name: "train-labels-idx1-ubyte", Size: 8 + 60_000}
	TestImages  = File{Name: "t10k-images-idx3-ubyte", Size: 16 + 10_000*Side*Side}
	TestLabels  = File{Name: "t10k-labels-idx1-ubyte", Size: 8 + 10_000}
)

// With returns the file with a SHA-256, and the size and SHA-256 of its compressed form.
func (f File) With(sum string, gzSize int64, gzSum string) File {
	return File{Name: f.Name, Size: f.Size, SHA256: sum, GzSize: gzSize, GzSHA256: gzSum}
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
	return loader{s, dir, false}.both()
}

// LoadAny is like Load for files of any size and content, as long as they are in MNIST's layout.
func (s Set) LoadAny(dir string) (train, test *data.Images, err error) {
	return loader{s, dir, true}.both()
}

// loader reads the files in a folder, or any files with their names.
type loader struct {
	Set
	dir string
	any bool
}

func (l loader) both() (train, test *data.Images, err error) {
	if train, err = l.load(l.Package+"-train", l.TrainImages, l.TrainLabels); err == nil {
		test, err = l.load(l.Package+"-test", l.TestImages, l.TestLabels)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", l.Package, err)
	}
	return train, test, nil
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
	sum := sha256.Sum256(content)
	if got := hex.EncodeToString(sum[:]); !l.any && got != f.SHA256 {
		return nil, nil, fmt.Errorf("%s is not %s's file: it has SHA-256 %s, not %s; remove it, and it is downloaded again", path, l.Title, got, f.SHA256)
	}
	if size, values, err = parse(content, rank); err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return size, values, err
}

// unsignedByte is the code for elements of one unsigned byte, the only ones that MNIST and its
// successors have.
const unsignedByte = 0x08

// parse parses an IDX file of bytes: two zeros, the element type, the number of axes, the size
// of each axis as a big-endian uint32, and the elements. The values are a slice of content, not a
// copy.
func parse(content []byte, rank int) (size []int, values []uint8, err error) {
	if len(content) < 4 {
		return nil, nil, fmt.Errorf("not an IDX file: %d bytes; the header alone has 4", len(content))
	}
	switch {
	case content[0] == 0x1f && content[1] == 0x8b:
		return nil, nil, errors.New("not an IDX file but a gzip file; decompress it with gunzip")
	case content[0] != 0 || content[1] != 0:
		return nil, nil, fmt.Errorf("not an IDX file: it begins with % x, not 00 00", content[:2])
	case content[2] != unsignedByte:
		return nil, nil, fmt.Errorf("elements of type 0x%02x; only 0x%02x, unsigned bytes, is supported", content[2], unsignedByte)
	case int(content[3]) != rank:
		return nil, nil, fmt.Errorf("%d axes; expected %d", content[3], rank)
	}
	head, values := content[4:], []uint8(nil)
	if len(head) < 4*rank {
		return nil, nil, fmt.Errorf("truncated: it ends within the sizes of its %d axes", rank)
	}
	want := uint64(1)
	for axis := range rank {
		n := binary.BigEndian.Uint32(head[4*axis:])
		if n == 0 {
			return nil, nil, fmt.Errorf("empty: axis %d has size 0", axis)
		}
		size = append(size, int(n))
		if want *= uint64(n); want > 1<<40 {
			return nil, nil, fmt.Errorf("sizes %v make no sense", size)
		}
	}
	values = head[4*rank:]
	switch got := uint64(len(values)); {
	case got < want:
		return nil, nil, fmt.Errorf("truncated: %d of %d elements", got, want)
	case got > want:
		return nil, nil, fmt.Errorf("%d bytes follow the last of %d elements", got-want, want)
	}
	return size, values, nil
}
