package data_test

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/data"
	"gonbatch/data/turbojpeg"
	"gonbatch/internal/bounded"
	"gonbatch/internal/machine"
	"gonbatch/internal/tier"
)

// jpegs returns a folder of real JPEGs of all kinds.
func jpegs(t *testing.T, count, seed int) string {
	t.Helper()
	python, err := filepath.Abs("../.cache/loggers-venv/bin/python")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(python); err != nil {
		machine.Lacks(t, "no Python environment with Pillow in .cache/loggers-venv: run `make setup`")
	}
	dir := t.TempDir()
	out, err := bounded.CombinedOutput(exec.Command(python, "testdata/jpegs.py", dir, fmt.Sprint(count), fmt.Sprint(seed)))
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return dir
}

// bothDecoders returns a folder as libjpeg-turbo decodes it, and as image/jpeg does.
func bothDecoders(t *testing.T, dir string, c data.FolderConfig) (turbo, plain *data.Folder) {
	t.Helper()
	folder, err := data.ImageFolder(dir, c)
	if err != nil {
		t.Fatal(err)
	}
	if folder.Turbo() == nil {
		machine.Lacks(t, data.JPEGDecoder()+": run `make setup`")
	}
	return folder, folder.WithTurbo(nil)
}

// read returns the pixels of an image, from 0 to 255, or the error.
func read(ds data.Dataset, i int) ([]float32, error) {
	inputs, _, err := ds.Batch([]int{i})
	if err != nil {
		return nil, err
	}
	pixels := tensors.MustCopyFlatData[float32](inputs[0])
	for i := range pixels {
		pixels[i] *= 255
	}
	return pixels, nil
}

// difference returns the largest difference of two images, and the mean one.
func difference(a, b []float32) (largest, mean float64) {
	for i := range a {
		d := math.Abs(float64(a[i] - b[i]))
		largest, mean = max(largest, d), mean+d/float64(len(a))
	}
	return largest, mean
}

// onlyTurbo reports whether image/jpeg refuses some valid files of this kind: in a progressive one
// it looks for restart markers at wrong places.
func onlyTurbo(path string) bool { return strings.Contains(path, "progressive-restarts") }

// TestDecodersAgree: libjpeg-turbo and image/jpeg decode JPEGs of all kinds to the same pixels.
func TestDecodersAgree(t *testing.T) {
	turbo, plain := bothDecoders(t, jpegs(t, 400, 1), data.FolderConfig{Height: 61, Width: 47})
	rounded := 0
	for i := range turbo.Len() {
		got, err := read(turbo, i)
		want, plainErr := read(plain, i)
		if onlyTurbo(turbo.Path(i)) && err == nil && plainErr != nil {
			continue
		}
		if err != nil || plainErr != nil {
			t.Fatal(err, plainErr)
		}
		largest, mean := difference(got, want)
		if largest > 3.01 || mean > 0.6 {
			t.Errorf("%s: pixels differ by up to %.1f levels, %.2f on average", filepath.Base(turbo.Path(i)), largest, mean)
		}
		if largest > 0 {
			rounded++
		}
	}
	if rounded < turbo.Len()/4 {
		t.Errorf("%d of %d images differ at all: one decoder has decoded most of them", rounded, turbo.Len())
	}
}

// TestDecodersRefuseTheSame breaks JPEGs: both decoders refuse the same files with the same error,
// which names the file, and see the same in the others. Bits that are wrong within the compressed
// data look right to both of them in most cases, and in some to only one.
func TestDecodersRefuseTheSame(t *testing.T) {
	turbo, plain := bothDecoders(t, jpegs(t, 100, 2), data.FolderConfig{Height: 40, Width: 40})
	random := rand.New(rand.NewPCG(1, 2))
	count := map[string]int{}
	for i := range turbo.Len() {
		path := turbo.Path(i)
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for range tier.Tries(40, 10) {
			b := breakOne(random, whole)
			writeFile(t, b.content, path)
			got, err := read(turbo, i)
			want, plainErr := read(plain, i)
			if err != nil && !strings.Contains(err.Error(), path) {
				t.Errorf("%v: it must name %s", err, path)
			}
			if b.inData || onlyTurbo(path) {
				count["unsure"]++
				continue
			}
			count[fmt.Sprint("refused ", err != nil)]++
			if fmt.Sprint(err) != fmt.Sprint(plainErr) {
				t.Errorf("%s, %s: libjpeg-turbo says %v, image/jpeg %v", filepath.Base(path), b.how, err, plainErr)
			} else if largest, _ := difference(got, want); largest > 3.01 {
				t.Errorf("%s, %s: pixels differ by up to %.1f levels", filepath.Base(path), b.how, largest)
			}
		}
	}
	if least := tier.Tries(500, 125); count["refused true"] < least || count["refused false"] < least {
		t.Errorf("too few of one kind: %v", count)
	}
}

// brokenFile is a file with something wrong.
type brokenFile struct {
	content []byte
	how     string
	inData  bool // Compressed data is wrong.
}

func breakOne(random *rand.Rand, whole []byte) brokenFile {
	at := random.IntN(len(whole))
	if random.IntN(2) == 0 {
		at = random.IntN(min(len(whole), 700)) // More often in the header.
	}
	place := fmt.Sprintf("at %d of %d", at, len(whole))
	before, after := whole[:at], whole[at:]
	inData := at > bytes.Index(whole, []byte{0xff, 0xc4}) // After its Huffman tables begin.
	switch random.IntN(5) {
	case 0:
		return brokenFile{before, "cut " + place, false}
	case 1:
		return brokenFile{slices.Concat(before, after[min(len(after), 1+random.IntN(20)):]), "bytes removed " + place, inData}
	case 2:
		return brokenFile{slices.Concat(whole, after), "more bytes after the end", false}
	case 3:
		return brokenFile{slices.Concat(before, []byte{0xff, byte(random.IntN(256))}, after), "a marker " + place, inData}
	default:
		other := bytes.Clone(whole)
		other[at] ^= byte(1 + random.IntN(255))
		return brokenFile{other, fmt.Sprintf("%#x instead of %#x %s", other[at], whole[at], place), inData}
	}
}

// TestReduced: reduced decoding changes little, and nothing where the image is not much larger.
func TestReduced(t *testing.T) {
	dir := jpegs(t, 200, 3)
	full, _ := bothDecoders(t, dir, data.FolderConfig{Height: 20, Width: 24})
	reduced, _ := bothDecoders(t, dir, data.FolderConfig{Height: 20, Width: 24, Reduced: true})
	same, sum := 0, 0.0
	for i := range full.Len() {
		want, err := read(full, i)
		if onlyTurbo(full.Path(i)) && err != nil {
			continue
		}
		got, reducedErr := read(reduced, i)
		if err != nil || reducedErr != nil {
			t.Fatal(err, reducedErr)
		}
		largest, mean := difference(got, want)
		if mean > 16 {
			t.Errorf("%s: pixels differ by %.1f levels on average", filepath.Base(full.Path(i)), mean)
		}
		sum += mean
		if largest == 0 {
			same++
		}
	}
	if n := full.Len(); same < n/10 || same > n*9/10 || sum/float64(n) > 0.01*255 {
		t.Errorf("%d of %d images are the same, and they differ by %.2f levels on average", same, n, sum/float64(n))
	}
}

// TestReducedFirst: without a size, all images must have that of the first one, also those whose
// half has it.
func TestReducedFirst(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, encoded(t, "1.jpg", 16, 16, red), dir, "a", "1.jpg")
	writeFile(t, encoded(t, "2.jpg", 32, 32, red), dir, "a", "2.jpg")
	ds, err := data.ImageFolder(dir, data.FolderConfig{Reduced: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := read(ds, 1); err == nil || !strings.Contains(err.Error(), "an image of 32x32 pixels, the first one has 16x16") {
		t.Errorf("%v", err)
	}
}

// photo returns a JPEG that compresses as a photo of ImageNet's mean size does: waves with noise.
func photo(b *testing.B) []byte {
	b.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	im := image.NewRGBA(image.Rect(0, 0, 500, 375))
	for y := range 375 {
		for x := range 500 {
			wave := 100 + 80*math.Sin(float64(x)/47)*math.Cos(float64(y)/31)
			im.SetRGBA(x, y, color.RGBA{uint8(wave + 30*random.Float64()), uint8(wave + 20*random.Float64()), uint8(200 - wave/2), 0xff})
		}
	}
	var file bytes.Buffer
	if err := jpeg.Encode(&file, im, &jpeg.Options{Quality: 90}); err != nil {
		b.Fatal(err)
	}
	return file.Bytes()
}

// BenchmarkJPEG decodes a photo of 500x375 pixels: alone, and as ImageFolder reads it, as numbers,
// in full or scaled to 224x224 pixels. ms/image is the least processor time, which other programs
// hardly change.
func BenchmarkJPEG(b *testing.B) {
	content := photo(b)
	path := filepath.Join(b.TempDir(), "class", "0.jpg")
	if err := errors.Join(os.Mkdir(filepath.Dir(path), 0o700), os.WriteFile(path, content, 0o600)); err != nil {
		b.Fatal(err)
	}
	library, err := turbojpeg.Open(turbojpeg.Names...)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("alone/image/jpeg", func(b *testing.B) {
		least(b, func() error { _, err := jpeg.Decode(bytes.NewReader(content)); return err })
	})
	b.Run("alone/libjpeg-turbo", func(b *testing.B) {
		least(b, func() error { return library.Decode(content, image.Point{}, func(*image.RGBA) error { return nil }) })
	})
	for _, size := range []image.Point{{X: 500, Y: 375}, {X: 224, Y: 224}} {
		folder, err := data.ImageFolder(filepath.Dir(filepath.Dir(path)), data.FolderConfig{Height: size.Y, Width: size.X})
		if err != nil {
			b.Fatal(err)
		}
		name := fmt.Sprintf("%dx%d/", size.X, size.Y)
		b.Run(name+"image/jpeg", func(b *testing.B) { least(b, func() error { return readOne(folder.WithTurbo(nil)) }) })
		b.Run(name+"libjpeg-turbo", func(b *testing.B) { least(b, func() error { return readOne(folder) }) })
	}
}

// readOne reads an image, and frees it.
func readOne(ds data.Dataset) error {
	x, y, err := ds.Batch([]int{0})
	if err != nil {
		return err
	}
	return errors.Join(x[0].FinalizeAll(), y[0].FinalizeAll())
}

// least reports the least processor time of a function.
func least(b *testing.B, f func() error) {
	shortest := time.Hour
	for b.Loop() {
		began := processorTime()
		for range 5 {
			if err := f(); err != nil {
				b.Fatal(err)
			}
		}
		shortest = min(shortest, (processorTime()-began)/5)
	}
	b.ReportMetric(float64(shortest.Microseconds())/1000, "ms/image")
}

func processorTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
