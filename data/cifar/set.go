package cifar

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"gonbatch/data"
	"gonbatch/internal/fetch"
)

// Set is a dataset: its files, and what they have.
type Set struct {
	Package string // Package names the dataset in messages: "cifar10".
	Title   string // Title is the dataset's own name: "CIFAR-10".
	// Archive is a gzipped tar archive that has the files, in Folder.
	Archive fetch.Source
	Folder  string
	// Train and Test are the files of the images for training, and of those for testing.
	Train, Test []string
	// Labels is the number of labels before the pixels of an image, a byte each. The last one is
	// its class.
	Labels    int
	Classes   int
	Mean, Std []float32 // Mean and Std of red, green and blue, from 0 to 1.
}

// files returns all files.
func (s Set) files() []string { return slices.Concat(s.Train, s.Test) }

// find returns the folder that has all files: Folder in dir, or dir itself. It returns "" if
// neither does.
func (s Set) find(dir string) string {
	for _, folder := range []string{filepath.Join(dir, s.Folder), dir} {
		lacks := func(name string) bool { return !fetch.Have(filepath.Join(folder, name), 0) }
		if !slices.ContainsFunc(s.files(), lacks) {
			return folder
		}
	}
	return ""
}

// Load reads the images for training and those for testing from dir, or from Folder in dir. Pixels
// are normalized with Mean and Std. The files may have fewer images than the archive's.
func (s Set) Load(dir string) (train, test *data.Images, err error) {
	folder := s.find(dir)
	if folder == "" {
		all := s.files()
		return nil, nil, fmt.Errorf("%s: %s lacks %s's files, %s to %s, also in %s; %s.Fetch downloads them",
			s.Package, dir, s.Title, all[0], all[len(all)-1], s.Folder, s.Package)
	}
	if train, err = s.load(folder, s.Package+"-train", s.Train); err != nil {
		return nil, nil, err
	}
	test, err = s.load(folder, s.Package+"-test", s.Test)
	return train, test, err
}

// load reads files as one set of images.
func (s Set) load(folder, name string, files []string) (*data.Images, error) {
	c := data.ImagesConfig{Name: name, Height: Side, Width: Side, Channels: channels, Classes: s.Classes, Mean: s.Mean, Std: s.Std}
	for _, file := range files {
		path := filepath.Join(folder, file)
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.Package, err)
		}
		if c.Pixels, c.Labels, err = s.parse(content, c.Pixels, c.Labels); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", s.Package, path, err)
		}
	}
	images, err := data.NewImages(c)
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", s.Package, folder, err)
	}
	return images, nil
}

// Side is the side of an image, in pixels.
const Side = 32

const (
	channels = 3
	plane    = Side * Side // The bytes of a channel.
)

// record returns the number of bytes of an image with its labels.
func (s Set) record() int { return s.Labels + channels*plane }

// parse appends the pixels of a file, channels last, and the classes. The file has all red bytes of
// an image before the green ones and the blue ones.
func (s Set) parse(content, pixels, classes []byte) ([]byte, []byte, error) {
	if len(content) == 0 || len(content)%s.record() != 0 {
		return nil, nil, fmt.Errorf("%d bytes are not a whole number of images of %d bytes: the file is incomplete, or not of %s's binary version; remove it", len(content), s.record(), s.Title)
	}
	n := len(content) / s.record()
	pixels, classes = slices.Grow(pixels, n*channels*plane), slices.Grow(classes, n)
	for image := range slices.Chunk(content, s.record()) {
		class := image[s.Labels-1]
		if int(class) >= s.Classes {
			return nil, nil, fmt.Errorf("image %d has class %d; the largest is %d: the file is damaged, or not of %s's binary version; remove it", len(classes), class, s.Classes-1, s.Title)
		}
		classes = append(classes, class)
		red, green, blue := image[s.Labels:][:plane], image[s.Labels+plane:][:plane], image[s.Labels+2*plane:][:plane]
		for i := range plane {
			pixels = append(pixels, red[i], green[i], blue[i])
		}
	}
	return pixels, classes, nil
}
