package data_test

import (
	"bytes"
	"errors"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/data"
)

// encoded returns an image of one color, in the format of the file name.
func encoded(t *testing.T, name string, width, height int, c color.Color) []byte {
	t.Helper()
	im := image.NewPaletted(image.Rect(0, 0, width, height), color.Palette{c})
	var file bytes.Buffer
	var err error
	switch filepath.Ext(name) {
	case ".gif":
		err = gif.Encode(&file, im, nil)
	case ".png", ".PNG":
		err = png.Encode(&file, im)
	default:
		err = jpeg.Encode(&file, im, &jpeg.Options{Quality: 100})
	}
	if err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

func writeFile(t *testing.T, content []byte, parts ...string) string {
	t.Helper()
	path := filepath.Join(parts...)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

var (
	red  = color.RGBA{R: 255, A: 255}
	blue = color.RGBA{B: 255, A: 255}
)

// TestImageFolder: classes and images are in the order of their names, in any format and size;
// hidden files and other files are ignored.
func TestImageFolder(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]color.Color{
		"zebra/b.jpg": red, "zebra/a.png": blue, "apple/deep/er/x.gif": red, "apple/Y.PNG": color.NRGBA{R: 255, A: 51}, "zebra/c.jpeg": color.Gray{Y: 128},
	} {
		writeFile(t, encoded(t, name, 8, 8, c), dir, name)
	}
	for _, name := range []string{".hidden/x.png", "zebra/.x.png", "zebra/notes.txt", "README.md"} {
		writeFile(t, []byte("no image"), dir, name)
	}
	ds, err := data.ImageFolder(dir, data.FolderConfig{Name: "animals", Height: 8, Width: 8})
	if err != nil {
		t.Fatal(err)
	}
	if got := ds.Classes(); !slices.Equal(got, []string{"apple", "zebra"}) || ds.Name() != "animals" || ds.Len() != 5 {
		t.Fatalf("%s: %d images of %q", ds.Name(), ds.Len(), got)
	}
	want := []struct {
		file  string
		label int32
		pixel [3]float32
	}{
		{"apple/Y.PNG", 0, [3]float32{0.2, 0, 0}}, {"apple/deep/er/x.gif", 0, [3]float32{1, 0, 0}},
		{"zebra/a.png", 1, [3]float32{0, 0, 1}}, {"zebra/b.jpg", 1, [3]float32{1, 0, 0}}, {"zebra/c.jpeg", 1, [3]float32{0.502, 0.502, 0.502}},
	}
	indices := []int{4, 0, 2, 3, 1, 0}
	inputs, labels, err := ds.Batch(indices)
	if err != nil {
		t.Fatal(err)
	}
	if got := inputs[0].Shape().Dimensions; !slices.Equal(got, []int{6, 8, 8, 3}) || !slices.Equal(labels[0].Shape().Dimensions, []int{6, 1}) {
		t.Errorf("shapes %v and %v", got, labels[0].Shape())
	}
	pixels, classes := tensors.MustCopyFlatData[float32](inputs[0]), tensors.MustCopyFlatData[int32](labels[0])
	for row, i := range indices {
		w := want[i]
		if ds.Path(i) != filepath.Join(dir, w.file) || classes[row] != w.label {
			t.Errorf("image %d is %s of class %d, want %s of %d", i, ds.Path(i), classes[row], w.file, w.label)
		}
		for k, p := range pixels[row*192:][:192] {
			if math.Abs(float64(p-w.pixel[k%3])) > 0.01 {
				t.Fatalf("%s: value %d is %g, want %g", w.file, k, p, w.pixel[k%3])
			}
		}
	}
}

// TestImageFolderClasses: a set has the numbers of another one's classes, also without images of
// all of them.
func TestImageFolderClasses(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"apple/1.png", "zebra/1.png", "zebra/2.png"} {
		writeFile(t, encoded(t, name, 8, 8, red), dir, name)
	}
	classes := []string{"zebra", "dog", "apple"}
	ds, err := data.ImageFolder(dir, data.FolderConfig{Classes: classes})
	if err != nil {
		t.Fatal(err)
	}
	_, labels, err := ds.Batch([]int{0, 1, 2})
	if err != nil || !slices.Equal(tensors.MustCopyFlatData[int32](labels[0]), []int32{2, 0, 0}) || !slices.Equal(ds.Classes(), classes) {
		t.Errorf("labels %v, classes %q, %v", labels, ds.Classes(), err)
	}
	if _, err := data.ImageFolder(dir, data.FolderConfig{Classes: classes[:2]}); err == nil || !strings.Contains(err.Error(), `the folder apple is none of the classes ["zebra" "dog"]`) {
		t.Errorf("a folder of another class: %v", err)
	}
}

// TestImageFolderScales: an image covers the size, and its center is kept; gray is the luma.
func TestImageFolderScales(t *testing.T) {
	wide := image.NewRGBA(image.Rect(0, 0, 90, 30)) // Red, blue and red thirds.
	for y := range 30 {
		for x := range 90 {
			wide.Set(x, y, map[bool]color.Color{true: blue, false: red}[x >= 30 && x < 60])
		}
	}
	var file bytes.Buffer
	if err := png.Encode(&file, wide); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	writeFile(t, file.Bytes(), dir, "one/wide.png")
	writeFile(t, encoded(t, "tall.png", 3, 100, blue), dir, "one/tall.png")
	for _, c := range []data.FolderConfig{{Height: 10, Width: 10}, {Height: 60, Width: 60, Gray: true}} {
		ds, err := data.ImageFolder(dir, c)
		if err != nil {
			t.Fatal(err)
		}
		want := []float32{0, 0, 1}
		if c.Gray {
			want = []float32{0.114}
		}
		for i, p := range pixelsOf(t, ds, 0, 0, 1) {
			if math.Abs(float64(p-want[i%len(want)])) > 0.005 {
				t.Fatalf("%+v: value %d is %g, want %v", c, i, p, want)
			}
		}
	}
}

// TestImageFolderRefuses: errors name the file, or the class, and the fix.
func TestImageFolderRefuses(t *testing.T) {
	good := encoded(t, "x.png", 8, 8, red)
	photo := encoded(t, "x.jpg", 8, 8, red)
	for want, files := range map[string]map[string][]byte{
		"it has no folders":         {"notes.txt": nil},
		"the class b has no images": {"a/1.png": good, "b/notes.txt": nil},
		"x.png belongs to no class": {"a/1.png": good, "x.png": good},
		"a/x.webp: images of this format can't be read: convert it to one of":                              {"a/x.webp": good},
		`a/1.png: image: unknown format: it begins with "text", unlike a JPEG, a PNG or a GIF`:             {"a/1.png": []byte("text")},
		"a/2.png: image: unknown format":                                                                   {"a/1.png": good, "a/2.png": []byte("text"), "a/3.png": []byte("text")},
		"a/2.jpg: image: unknown format: it is a WebP image: convert it to a JPEG, a PNG or a GIF":         {"a/1.png": good, "a/2.jpg": []byte("RIFF1234WEBPVP8 ")},
		"a/2.jpg: image: unknown format: the file is empty: copy it again, or remove it":                   {"a/1.png": good, "a/2.jpg": nil},
		"a/2.png: png: invalid format: unexpected EOF: the file is truncated: copy it again, or remove it": {"a/1.png": good, "a/2.png": good[:len(good)-20]},
		"a/2.jpg: unexpected EOF: the file is truncated: copy it again, or remove it":                      {"a/1.png": good, "a/2.jpg": photo[:len(photo)-2]},
		"a/2.png: png: invalid format: invalid checksum: copy the file again, or remove it":                {"a/1.png": good, "a/2.png": append(bytes.Clone(good[:len(good)-14]), "damaged footer"...)},
		"a/2.png: an image of 9x8 pixels, the first one has 8x8: set Height and":                           {"a/1.png": good, "a/2.png": encoded(t, "x.png", 9, 8, red)},
	} {
		dir := t.TempDir()
		for name, content := range files {
			writeFile(t, content, dir, name)
		}
		ds, err := data.ImageFolder(dir, data.FolderConfig{})
		if err == nil {
			_, _, err = ds.Batch([]int{0, 1, ds.Len() - 1})
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if _, err := data.ImageFolder(filepath.Join(t.TempDir(), "none"), data.FolderConfig{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder that is not there: %v", err)
	}
	dir := t.TempDir()
	writeFile(t, good, dir, "a/1.png")
	if _, err := data.ImageFolder(dir, data.FolderConfig{Height: 8}); err == nil || !strings.Contains(err.Error(), "must both be positive, or both 0, got 8 and 0") {
		t.Errorf("no width: %v", err)
	}
}

// TestUnlabeledFolder: the images of a folder and its subfolders, without labels.
func TestUnlabeledFolder(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"b.png", "a.jpg", "deep/er/c.png", "notes.txt"} {
		writeFile(t, encoded(t, name, 8, 8, red), dir, name)
	}
	ds, err := data.ImageFolder(dir, data.FolderConfig{Unlabeled: true})
	if err != nil {
		t.Fatal(err)
	}
	inputs, labels, err := ds.Batch([]int{2, 0})
	if err != nil || ds.Len() != 3 || len(ds.Classes()) > 0 || labels != nil || !slices.Equal(inputs[0].Shape().Dimensions, []int{2, 8, 8, 3}) || filepath.Base(ds.Path(0)) != "a.jpg" {
		t.Errorf("%d images, the first is %s, classes %v, batch %v, labels %v, %v", ds.Len(), ds.Path(0), ds.Classes(), inputs, labels, err)
	}
	if _, err := data.ImageFolder(t.TempDir(), data.FolderConfig{Unlabeled: true}); err == nil || !strings.Contains(err.Error(), "it has no images (.gif,") {
		t.Errorf("an empty folder: %v", err)
	}
}

// TestOddEntries: what is not a file, such as a named pipe, would hang a training; a link may lead
// nowhere, or back.
func TestOddEntries(t *testing.T) {
	good := encoded(t, "x.png", 8, 8, red)
	for want, add := range map[string]func(path string) error{
		"0.jpg is not a file: remove it":                                   func(path string) error { return syscall.Mkfifo(path, 0o666) },
		"0.jpg is a link to nowhere: no such file or directory: remove it": func(path string) error { return os.Symlink("nowhere", path) },
		"0.jpg/a leads back to a folder that it is in: remove the link":    func(path string) error { return os.Symlink("..", path) },
	} {
		dir := t.TempDir()
		writeFile(t, good, dir, "a", "1.png")
		if err := add(filepath.Join(dir, "a", "0.jpg")); err != nil {
			t.Fatal(err)
		}
		if _, err := data.ImageFolder(dir, data.FolderConfig{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestImageTooLarge: an image that doesn't fit into memory is refused by its header.
func TestImageTooLarge(t *testing.T) {
	huge := bytes.Clone(encoded(t, "x.gif", 8, 8, red))
	copy(huge[6:10], []byte{0xff, 0xff, 0xff, 0xff}) // Width and height of the GIF.
	dir := t.TempDir()
	writeFile(t, huge, dir, "a/huge.gif")
	ds, err := data.ImageFolder(dir, data.FolderConfig{Height: 8, Width: 8})
	if err == nil {
		_, _, err = ds.Batch([]int{0})
	}
	if err == nil || !strings.Contains(err.Error(), "huge.gif: an image of 65535x65535 pixels") {
		t.Errorf("%v", err)
	}
}

// TestImageFolderAtOnce: several goroutines may read concurrently, and links are followed.
func TestImageFolderAtOnce(t *testing.T) {
	dir := t.TempDir()
	target := writeFile(t, encoded(t, "x.jpg", 8, 8, red), t.TempDir(), "class", "x.jpg")
	if err := os.Symlink(filepath.Dir(target), filepath.Join(dir, "linked")); err != nil {
		t.Fatal(err)
	}
	ds, err := data.ImageFolder(dir, data.FolderConfig{})
	if err != nil {
		t.Fatal(err)
	}
	want := pixelsOf(t, ds, 0, make([]int, 20)...)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			inputs, _, err := ds.Batch(make([]int, 20))
			if err != nil || !slices.Equal(tensors.MustCopyFlatData[float32](inputs[0]), want) {
				t.Errorf("other pixels, %v", err)
			}
		})
	}
	group.Wait()
}
