package data

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
	"golang.org/x/sync/errgroup"
)

// FolderConfig says how ImageFolder reads images.
type FolderConfig struct {
	// Name of the dataset. Default: the name of the folder.
	Name string
	// Height and Width are the size of all images. An image of another size is scaled to cover it,
	// and cropped to its center. If both are 0, it is the size of the first image, and an image of
	// another size is an error.
	Height, Width int
	// Gray converts the images to one channel, the luma. Otherwise they have three channels: red,
	// green and blue.
	Gray bool
	// Reduced decodes JPEGs that are more than twice the size of the dataset at 1/2, 1/4 or 1/8 of
	// theirs, and then scales them. This is faster, and pixels differ by about 0.01 on average from
	// those of the default, which decodes them fully. It has an effect only with libjpeg-turbo: see
	// JPEGDecoder.
	Reduced bool
	// Classes are the names of the classes, in the order of their numbers, such as those of a
	// training set. Some may have no images. Default: the names of the folders, in their order.
	Classes []string
	// Unlabeled takes all images in the folder and its subfolders, without classes and labels:
	// those for which a model is to predict the class.
	Unlabeled bool
}

// Folder is a set of image files with a folder for each class. It keeps no images in memory: each
// batch reads its own, on all processors.
type Folder struct {
	config  FolderConfig
	dir     string
	classes []string
	paths   []string
	sizes   []int64 // Of the files.
	labels  []int32 // Nil if it is unlabeled.
	decoder decoder
}

// ImageFolder finds the images in dir, which has a folder for each class, named after it:
// dir/cats/1.jpg, dir/dogs/a/2.png. The classes are numbered in the order of their names, or of
// FolderConfig.Classes, and the images in the order of their paths. Links are followed. Images are
// files whose names end in .jpg, .jpeg, .png or .gif, and which of these formats they have does not
// depend on the name; only the first frame of an animated GIF is used. Other files are ignored, and
// so are files and folders whose names begin with a dot. An image of another format, a folder
// without images, or an image outside a class is an error.
//
// Pixels range from 0 (black) to 1. Transparent ones are drawn on black. The orientation that a
// camera notes in a photo's EXIF header is ignored, as in torchvision. JPEGs are decoded by
// libjpeg-turbo where it is installed, and otherwise by image/jpeg; their pixels may differ by
// 3/255. FolderConfig.Unlabeled is for images without classes.
func ImageFolder(dir string, c FolderConfig) (*Folder, error) {
	if c.Name == "" {
		c.Name = filepath.Base(dir)
	}
	f := &Folder{config: c, dir: dir, decoder: decoder{ImageDecoder: ImageDecoder{c.Height, c.Width, c.Gray, c.Reduced}}}
	f.decoder.turbo, _ = turbo() // Without it, image/jpeg does.
	if err := f.find(dir); err != nil {
		return nil, fmt.Errorf("data: images of %s: %w", dir, err)
	}
	if c.Height < 0 || c.Width < 0 || (c.Height == 0) != (c.Width == 0) {
		return nil, fmt.Errorf("data: images of %s: Height and Width must both be positive, or both 0, got %d and %d", dir, c.Height, c.Width)
	}
	if c.Height == 0 {
		size, err := imageSize(f.paths[0])
		if err != nil {
			return nil, fmt.Errorf("data: images of %s: %w", dir, err)
		}
		f.decoder.Height, f.decoder.Width, f.decoder.asFirst = size.Y, size.X, true
	}
	return f, nil
}

// find lists the classes and their images.
func (f *Folder) find(dir string) error {
	f.classes = slices.Clone(f.config.Classes)
	err := f.add(dir)
	switch {
	case err != nil || len(f.paths) > 0:
		return err
	case f.config.Unlabeled:
		return fmt.Errorf("it has no images (%s)", strings.Join(readable, ", "))
	}
	return errors.New("it has no folders: it needs one for each class, or set Unlabeled for images without classes")
}

// add adds the images in a folder and its subfolders. above are the folders that it is in.
func (f *Folder) add(folder string, above ...fs.FileInfo) error {
	info, err := os.Stat(folder)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(above, func(other fs.FileInfo) bool { return os.SameFile(info, other) }) {
		return fmt.Errorf("%s leads back to a folder that it is in: remove the link", folder)
	}
	hasClasses := folder == f.dir && !f.config.Unlabeled
	above = append(above[:len(above):len(above)], info)
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		path := filepath.Join(folder, entry.Name())
		info, err := stat(path)
		if err != nil {
			return err
		}
		isOne, err := isImage(path)
		switch {
		case info.IsDir() && hasClasses:
			err = f.addClass(path)
		case info.IsDir():
			err = f.add(path, above...)
		case err != nil || !isOne:
		case hasClasses:
			err = fmt.Errorf("%s belongs to no class: move it to a folder named after its class, or set Unlabeled for images without classes", entry.Name())
		case !info.Mode().IsRegular():
			err = fmt.Errorf("%s is not a file: remove it", path)
		default:
			f.paths, f.sizes = append(f.paths, path), append(f.sizes, info.Size())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (f *Folder) addClass(path string) error {
	before := len(f.paths)
	if err := f.add(path); err != nil {
		return err
	}
	name := filepath.Base(path)
	if len(f.paths) == before {
		return fmt.Errorf("the class %s has no images (%s)", name, strings.Join(readable, ", "))
	}
	if len(f.config.Classes) == 0 {
		f.classes = append(f.classes, name)
	}
	class := slices.Index(f.classes, name)
	if class < 0 {
		return fmt.Errorf("the folder %s is none of the classes %q", name, f.classes)
	}
	f.labels = append(f.labels, slices.Repeat([]int32{int32(class)}, len(f.paths)-before)...)
	return nil
}

// stat follows links.
func stat(path string) (fs.FileInfo, error) {
	info, err := os.Stat(path)
	if err != nil {
		if target, linkErr := os.Readlink(path); linkErr == nil {
			return nil, fmt.Errorf("%s is a link to %s: %w: remove it", path, target, errors.Unwrap(err))
		}
	}
	return info, err
}

// readable are the extensions of images that can be read, unreadable those of some that can't.
var (
	readable   = []string{".gif", ".jpeg", ".jpg", ".png"}
	unreadable = []string{".avif", ".bmp", ".heic", ".jp2", ".pgm", ".ppm", ".tif", ".tiff", ".webp"}
)

// isImage reports whether a file is an image, by its name.
func isImage(path string) (bool, error) {
	end := strings.ToLower(filepath.Ext(path))
	if slices.Contains(unreadable, end) {
		return false, fmt.Errorf("%s: images of this format can't be read: convert it to one of %s", path, strings.Join(readable, ", "))
	}
	return slices.Contains(readable, end), nil
}

// Name returns the name of the dataset.
func (f *Folder) Name() string { return f.config.Name }

// Len returns the number of images.
func (f *Folder) Len() int { return len(f.paths) }

// Classes returns the names of the classes. The label of an image is the index of its class in this
// list.
func (f *Folder) Classes() []string { return slices.Clone(f.classes) }

// Path returns the file of an image.
func (f *Folder) Path(i int) string { return f.paths[i] }

// Fingerprint hashes the names of the images in their folder, the sizes of their files, and how
// they are decoded. It implements Fingerprinted.
func (f *Folder) Fingerprint() string {
	hash := sha256.New()
	fmt.Fprintf(hash, "%+v %d\n", f.decoder.ImageDecoder, f.labels)
	for i, path := range f.paths {
		name, err := filepath.Rel(f.dir, path)
		if err != nil {
			name = path
		}
		fmt.Fprintf(hash, "%q %d\n", name, f.sizes[i])
	}
	return sum(hash)
}

// Batch returns one input, [n, height, width, 3 or 1] float32, and, unless the set is unlabeled,
// one tensor of labels, [n, 1] int32. See Dataset. An error names the file that can't be read.
func (f *Folder) Batch(indices []int) (inputs, labels []*tensors.Tensor, err error) {
	if err := CheckNumbers(f.Name(), indices, f.Len()); err != nil {
		return nil, nil, err
	}
	x := tensors.FromShape(shapes.Make(dtypes.Float32, len(indices), f.decoder.Height, f.decoder.Width, f.decoder.Channels()))
	var readErr error
	err = tensors.MutableFlatData(x, func(flat []float32) { readErr = f.read(flat, indices) })
	if err := errors.Join(readErr, err); err != nil {
		return nil, nil, fmt.Errorf("data: images of %s: %w", f.Name(), err)
	}
	if f.config.Unlabeled {
		return []*tensors.Tensor{x}, nil, nil
	}
	y, err := labelTensor(len(indices), func(row int) int32 { return f.labels[indices[row]] })
	if err != nil {
		return nil, nil, fmt.Errorf("data: images of %s: %w", f.Name(), err)
	}
	return []*tensors.Tensor{x}, []*tensors.Tensor{y}, nil
}

// read fills in the images. It returns the error of the first one that can't be read.
func (f *Folder) read(flat []float32, indices []int) error {
	size := f.decoder.Height * f.decoder.Width * f.decoder.Channels()
	errs := make([]error, len(indices))
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0)) // This many images are in memory at once.
	for row, index := range indices {
		group.Go(func() error {
			errs[row] = withFile(f.paths[index], func(file io.ReadSeeker) error {
				return f.decoder.read(flat[row*size:(row+1)*size], file)
			})
			return nil
		})
	}
	_ = group.Wait() // The errors are in errs.
	return cmp.Or(errs...)
}
