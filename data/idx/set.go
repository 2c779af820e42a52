package idx

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"

	"gonbatch/data"
	"gonbatch/internal/plural"
)

// Side is the side of an image in MNIST's layout, in pixels.
const Side = 28

// Set is a dataset in a folder.
type Set struct {
	Package   string // Package names the dataset in messages: "mnist".
	Title     string // Title is the dataset's own name: "MNIST".
	Dir       string
	Classes   int
	Mean, Std float32 // Mean and Std of the pixels, from 0 to 1.
	// Any accepts files of any size and content, as long as they are in MNIST's layout. Otherwise
	// they must have the given SHA-256.
	Any bool
}

// Part is a part of a dataset, such as the images for training.
type Part struct {
	Name           string // Name of the images in messages.
	Images, Labels File
}

// Load reads the images for training and those for testing.
func (s Set) Load(train, test Part) (trainSet, testSet *data.Images, err error) {
	if trainSet, err = s.load(train); err != nil {
		return nil, nil, err
	}
	if testSet, err = s.load(test); err != nil {
		return nil, nil, err
	}
	return trainSet, testSet, nil
}

func (s Set) load(p Part) (*data.Images, error) {
	size, pixels, err := s.read(p.Images, 3)
	if err != nil {
		return nil, err
	}
	if size[1] != Side || size[2] != Side {
		return nil, fmt.Errorf("%s: %s has images of %dx%d pixels, not %dx%d", s.Package, s.path(p.Images), size[1], size[2], Side, Side)
	}
	_, classOf, err := s.read(p.Labels, 1)
	if err != nil {
		return nil, err
	}
	if len(classOf) != size[0] {
		return nil, fmt.Errorf("%s: %s has %s, but %s has %s", s.Package, s.path(p.Images), plural.Of(size[0], "image"), p.Labels.Name, plural.Of(len(classOf), "label"))
	}
	set, err := data.NewImages(data.ImagesConfig{
		Name: p.Name, Height: Side, Width: Side, Channels: 1, Classes: s.Classes,
		Pixels: pixels, Labels: classOf, Mean: []float32{s.Mean}, Std: []float32{s.Std},
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", s.Package, s.Dir, err)
	}
	return set, nil
}

func (s Set) path(f File) string { return filepath.Join(s.Dir, f.Name) }

func (s Set) read(f File, rank int) (size []int, values []uint8, err error) {
	content, err := os.ReadFile(s.path(f))
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w; %s.Fetch downloads it", s.Package, err, s.Package)
	}
	if err := s.genuine(f, content); err != nil {
		return nil, nil, err
	}
	size, values, err = parse(content, rank)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %s: %w", s.Package, s.path(f), err)
	}
	return size, values, nil
}

// genuine returns an error if the content is not the file's.
func (s Set) genuine(f File, content []byte) error {
	sum := sha256.Sum256(content)
	if got := hex.EncodeToString(sum[:]); !s.Any && got != f.SHA256 {
		return fmt.Errorf("%s: %s is not %s's file: it has SHA-256 %s, not %s; remove it, and it is downloaded again", s.Package, s.path(f), s.Title, got, f.SHA256)
	}
	return nil
}
