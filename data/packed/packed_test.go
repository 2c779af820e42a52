package packed_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"image"
	"image/jpeg"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/data"
	"gonbatch/data/load"
	"gonbatch/data/packed"
	"gonbatch/tests/tmpfs"
)

// mixed is a dataset with inputs and labels of several types and shapes.
func mixed(t *testing.T, n int) data.Dataset {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	floats, ints, halves, flags := make([]float32, n*6), make([]int64, n), make([]uint8, n*3), make([]bool, n)
	for i := range floats {
		floats[i] = float32(random.NormFloat64())
	}
	for i := range n {
		ints[i], flags[i] = random.Int64(), random.IntN(2) == 0
	}
	for i := range halves {
		halves[i] = uint8(random.Uint32())
	}
	ds, err := data.Tensors("mixed",
		[]*tensors.Tensor{tensors.FromFlatDataAndDimensions(floats, n, 2, 3), tensors.FromFlatDataAndDimensions(halves, n, 3)},
		[]*tensors.Tensor{tensors.FromFlatDataAndDimensions(ints, n), tensors.FromFlatDataAndDimensions(flags, n, 1)})
	if err != nil {
		t.Fatal(err)
	}
	return ds
}

// photos writes a folder of JPEGs of noise, in two classes.
func photos(t testing.TB, n, size int) *data.Folder {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "photos")
	random := rand.New(rand.NewPCG(3, 4))
	for i := range n {
		im := image.NewRGBA(image.Rect(0, 0, size, size))
		for p := range im.Pix {
			im.Pix[p] = uint8(random.Uint32())
		}
		var file bytes.Buffer
		class := filepath.Join(dir, []string{"cats", "dogs"}[i%2])
		if err := errors.Join(jpeg.Encode(&file, im, nil), os.MkdirAll(class, 0o777), os.WriteFile(filepath.Join(class, fmt.Sprintf("%03d.jpg", i)), file.Bytes(), 0o666)); err != nil {
			t.Fatal(err)
		}
	}
	folder, err := data.ImageFolder(dir, data.FolderConfig{})
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

// same compares the examples of two datasets, in random batches.
func same(t *testing.T, got, want data.Dataset) {
	t.Helper()
	if got.Len() != want.Len() {
		t.Fatalf("%d examples, want %d", got.Len(), want.Len())
	}
	random := rand.New(rand.NewPCG(5, 6))
	for range 20 {
		indices := make([]int, 1+random.IntN(9))
		for i := range indices {
			indices[i] = random.IntN(want.Len())
		}
		x, y, err := got.Batch(indices)
		if err != nil {
			t.Fatal(err)
		}
		wantX, wantY, err := want.Batch(indices)
		if err != nil {
			t.Fatal(err)
		}
		for i, tensor := range append(wantX, wantY...) {
			if other := append(x, y...)[i]; !tensor.Equal(other) {
				t.Fatalf("tensor %d of examples %v: %s, want %s", i, indices, other, tensor)
			}
		}
	}
}

// TestSame: a file has the same examples, bit for bit, in any number of files.
func TestSame(t *testing.T) {
	dir := t.TempDir()
	for name, ds := range map[string]data.Dataset{"mixed": mixed(t, 101), "photos": photos(t, 20, 16)} {
		path := filepath.Join(dir, name)
		if err := packed.Write(path, ds, packed.Config{Bytes: name == "photos"}); err != nil {
			t.Fatal(err)
		}
		for i, cut := range []int{0, 7, ds.Len() - 1, ds.Len()} {
			if i > 0 {
				if err := packed.Write(fmt.Sprintf("%s-%d", path, i), data.Range(ds, []int{0, 7, ds.Len() - 1}[i-1], cut), packed.Config{Bytes: name == "photos"}); err != nil {
					t.Fatal(err)
				}
			}
		}
		for _, pattern := range []string{path, path + "-{1..3}"} {
			set, err := packed.Open(pattern)
			if err != nil {
				t.Fatal(err)
			}
			same(t, set, ds)
			if set.Name() != name {
				t.Errorf("it is called %q", set.Name())
			}
		}
	}
	set, err := packed.Open(filepath.Join(dir, "photos"))
	if err != nil || !slices.Equal(set.Classes(), []string{"cats", "dogs"}) {
		t.Errorf("the classes are %v, %v", set.Classes(), err)
	}
	for _, indices := range [][]int{nil, {-1}, {20}} {
		if _, _, err := set.Batch(indices); err == nil || !strings.Contains(err.Error(), "packed: photos: ") {
			t.Errorf("%v: %v", indices, err)
		}
	}
}

// counted counts the examples that are read.
type counted struct {
	*data.Folder
	read *atomic.Int64
}

func (c counted) Batch(indices []int) (inputs, labels []*tensors.Tensor, err error) {
	c.read.Add(int64(len(indices)))
	return c.Folder.Batch(indices)
}

// TestKeep: of programs that start together, one writes the file; a file of other examples is an
// error.
func TestKeep(t *testing.T) {
	folder := photos(t, 40, 8)
	ds := counted{folder, &atomic.Int64{}}
	path := filepath.Join(t.TempDir(), "new", "photos.packed")
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			set, err := packed.Keep(path, ds, packed.Config{Bytes: true})
			if err != nil {
				t.Error(err)
				return
			}
			same(t, set, folder)
		})
	}
	group.Wait()
	if n := ds.read.Load(); n > 40+2*16+8 {
		t.Errorf("%d examples were read to write 40 once", n)
	}
	if _, err := packed.Keep(path, folder, packed.Config{}); err == nil || !strings.Contains(err.Error(), "or with another Config: remove it") {
		t.Errorf("another Config: %v", err)
	}
	if err := os.WriteFile(folder.Path(3), []byte("changed"), 0o666); err != nil {
		t.Fatal(err)
	}
	changed, err := data.ImageFolder(filepath.Dir(filepath.Dir(folder.Path(0))), data.FolderConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := packed.Keep(path, changed, packed.Config{Bytes: true}); err == nil || !strings.Contains(err.Error(), "was written from other examples") {
		t.Errorf("a changed file: %v", err)
	}
}

// TestKeepOfPart: a file of some examples is not that of others with the same name and number, nor
// of the same part after the dataset has changed; it has the names of the classes.
func TestKeepOfPart(t *testing.T) {
	split := func(ds data.Dataset, counts ...int) data.Dataset {
		parts, err := data.SplitCounts(ds, 1, counts...)
		if err != nil {
			t.Fatal(err)
		}
		return parts[1]
	}
	repacked := func(ds data.Dataset) data.Dataset {
		path := filepath.Join(t.TempDir(), "photos")
		set, err := packed.Keep(path, ds, packed.Config{})
		if err != nil {
			t.Fatal(err)
		}
		return set
	}
	reopened := func(folder *data.Folder) *data.Folder {
		again, err := data.ImageFolder(filepath.Dir(filepath.Dir(folder.Path(0))), data.FolderConfig{})
		if err != nil {
			t.Fatal(err)
		}
		return again
	}
	others := photos(t, 20, 8)
	content, err := os.ReadFile(others.Path(3))
	if err := errors.Join(err, os.WriteFile(others.Path(2), append(content, 0), 0o666)); err != nil {
		t.Fatal(err)
	}
	photos, others := photos(t, 20, 8), reopened(others)
	for name, test := range map[string]struct{ first, second data.Dataset }{
		"range":          {data.Range(photos, 0, 6), data.Range(photos, 6, 12)},
		"split":          {split(photos, 5, 10, 5), split(photos, 6, 10, 4)},
		"changed images": {data.Range(photos, 0, 6), data.Range(others, 0, 6)},
		"serial":         {data.Serial(photos), data.Serial(others)},
		"normalized":     {photos, data.Augment(photos, 1, data.Normalize(make([]float32, 3), []float32{1, 1, 2}))},
		"packed":         {repacked(data.Range(photos, 0, 6)), repacked(data.Range(photos, 6, 12))},
	} {
		path := filepath.Join(t.TempDir(), "kept")
		for range 2 {
			if set, err := packed.Keep(path, test.first, packed.Config{}); err != nil || !slices.Equal(set.Classes(), []string{"cats", "dogs"}) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if set, err := packed.Keep(path, test.second, packed.Config{}); err == nil || !strings.Contains(err.Error(), "was written from other examples") {
			t.Errorf("%s: other examples: %v, %v", name, set, err)
		}
	}
}

// TestDamaged: every byte of a file matters, and so does its length. Damage is an error that names
// the file, never other values and never a crash.
func TestDamaged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mixed.packed")
	ds := mixed(t, 30)
	if err := packed.Write(path, ds, packed.Config{}); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	all := make([]int, ds.Len())
	for i := range all {
		all[i] = i
	}
	read := func(what string, content []byte) error {
		t.Helper()
		if err := os.WriteFile(path, content, 0o666); err != nil {
			t.Fatal(err)
		}
		set, err := packed.Open(path)
		if err == nil {
			_, _, err = set.Batch(all)
		}
		if err != nil && !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", what, err)
		}
		return err
	}
	text := bytes.IndexByte(content, 0)
	random := rand.New(rand.NewPCG(7, 8))
	for range 500 {
		at := random.IntN(len(content))
		if at >= text && at < 4096 {
			continue // The padding means nothing.
		}
		damaged := bytes.Clone(content)
		damaged[at] ^= 1 << random.IntN(8)
		if read("damaged", damaged) == nil {
			t.Errorf("byte %d changed, and nothing was said", at)
		}
		if read("truncated", content[:at]) == nil {
			t.Errorf("cut at byte %d, and nothing was said", at)
		}
	}
	for what, damage := range map[string]func([]byte) []byte{
		"it was not written by package packed": func([]byte) []byte { return []byte("hello, world\n") },
		`its format is version "2", and this`:  func(c []byte) []byte { return bytes.Replace(c, []byte("packed 1"), []byte("packed 2"), 1) },
		"instead of":                           func(c []byte) []byte { return append(bytes.Clone(c), 0) },
		"example 29 is damaged: copy the file": func(c []byte) []byte { c = bytes.Clone(c); c[len(c)-1] ^= 1; return c },
		"its head is damaged: copy it again":   func(c []byte) []byte { return bytes.Replace(c, []byte(`"mixed"`), []byte(`"mixer"`), 1) },
		"packed: open ":                        func([]byte) []byte { return nil },
	} {
		if err := read(what, damage(content)); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%v, want %q", err, what)
		}
	}
}

// TestOtherByteOrder: a file with the other byte order is an error, where its numbers would be read
// as others. So is one whose bytes were swapped by a copy, with its head.
func TestOtherByteOrder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "photos.packed")
	if err := packed.Write(path, photos(t, 20, 8), packed.Config{}); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	swapped := bytes.Clone(content)
	for word := range slices.Chunk(swapped, 4) {
		slices.Reverse(word)
	}
	for want, file := range map[string][]byte{
		`its byte order is "big": only "little" can be read: write it again on a machine with this byte order`: bigEndian(t, content),
		"it was not written by package packed": swapped,
	} {
		if err := os.WriteFile(path, file, 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := packed.Open(path); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%v, want %q", err, want)
		}
		if _, err := packed.Keep(path, photos(t, 20, 8), packed.Config{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Keep: %v, want %q", err, want)
		}
	}
}

// bigEndian returns a file of 4-byte numbers as a machine of the other byte order would write it:
// with all checksums right, and of the same size.
func bigEndian(t *testing.T, content []byte) []byte {
	t.Helper()
	_, head, _ := bytes.Cut(content[:4096], []byte("\n"))
	head, _, _ = bytes.Cut(head, []byte("\n"))
	if !bytes.Contains(head, []byte(`"byte_order":"little"`)) {
		t.Fatalf("the head is %s", head)
	}
	head = bytes.Replace(head, []byte(`"little"`), []byte(`"big"`), 1)
	table := crc32.MakeTable(crc32.Castagnoli)
	file := fmt.Appendf(nil, "gonbatch packed 1 %08x\n%s\n", crc32.Checksum(head, table), head)
	file = append(file, make([]byte, 4096-len(file))...)
	records := bytes.Clone(content[4096 : len(content)-20*crc32.Size])
	for number := range slices.Chunk(records, 4) {
		slices.Reverse(number)
	}
	file = append(file, records...)
	for record := range slices.Chunk(records, len(records)/20) {
		file = binary.BigEndian.AppendUint32(file, crc32.Checksum(record, table))
	}
	if len(file) != len(content) {
		t.Fatalf("%d bytes, want %d", len(file), len(content))
	}
	return file
}

// TestImpossibleHeads: a head that no file can have is an error, even if its checksum is right.
func TestImpossibleHeads(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.packed")
	for fields, want := range map[string]string{
		`"examples":0,"inputs":[{"type":"Float32","shape":[3]}]`:                    "0 examples with 1 input",
		`"examples":-9223372036854775808,"inputs":[{"type":"Float32","shape":[3]}]`: "with 1 input",
		`"examples":4611686018427387904,"inputs":[{"type":"Uint8","shape":[]}]`:     "of 1 bytes",
		`"examples":1`: "with 0 inputs",
		`"examples":1,"inputs":[{"type":"Float32","shape":[-3]}]`:           "a column of shape [-3]",
		`"examples":1,"inputs":[{"type":"Float32","shape":[65536,65536]}]`:  "a column of shape [65536 65536]",
		`"examples":1,"inputs":[{"type":"What","shape":[3]}]`:               `a column of type "What"`,
		`"examples":1,"inputs":[{"type":"Int4","shape":[3]}]`:               `a column of type "Int4"`,
		`"examples":1,"inputs":[{"type":"Int32","shape":[3],"bytes":true}]`: `a column of type "Int32"`,
	} {
		head := []byte(`{"name":"a","byte_order":"little",` + fields + `}`)
		text := fmt.Appendf(nil, "gonbatch packed 1 %08x\n%s\n", crc32.Checksum(head, crc32.MakeTable(crc32.Castagnoli)), head)
		if err := os.WriteFile(path, append(text, make([]byte, 4096-len(text))...), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := packed.Open(path); err == nil || !strings.Contains(err.Error(), "its head is damaged: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", fields, err, want)
		}
	}
}

// TestTruncatedWhileOpen: an example that a file loses under a program is an error, and the others
// are still right.
func TestTruncatedWhileOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "photos.packed")
	if err := packed.Write(path, photos(t, 60, 32), packed.Config{}); err != nil {
		t.Fatal(err)
	}
	set, err := packed.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 100_000); err != nil {
		t.Fatal(err)
	}
	if _, _, err := set.Batch([]int{1}); err != nil {
		t.Errorf("it is still there: %v", err)
	}
	if _, _, err := set.Batch([]int{59}); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "has been truncated since") {
		t.Errorf("it is gone: %v", err)
	}
}

// TestRefuses: what can't be written leaves no file.
func TestRefuses(t *testing.T) {
	folder, dir := photos(t, 20, 8), t.TempDir()
	negative, err := data.Tensors("negative", []*tensors.Tensor{tensors.FromFlatDataAndDimensions([]float32{0, 1, 0.5, -0.1}, 4, 1)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	broken := photos(t, 30, 8)
	if err := os.WriteFile(broken.Path(21), []byte("no JPEG"), 0o666); err != nil {
		t.Fatal(err)
	}
	for want, ds := range map[string]data.Dataset{
		"example 3 of negative: value 0 is -0.1: with Config.Bytes": negative,
		"the examples of photos differ between epochs":              data.Augment(folder, 1, data.RandomFlip(0.5)),
		filepath.Base(broken.Path(21)) + ": image: unknown format":  broken,
	} {
		if err := packed.Write(filepath.Join(dir, "x"), ds, packed.Config{Bytes: true}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if err := packed.Write(filepath.Join(dir, "none", "x"), folder, packed.Config{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no folder: %v", err)
	}
	if err := errors.Join(packed.Write(filepath.Join(dir, "a-1"), folder, packed.Config{}), packed.Write(filepath.Join(dir, "a-2"), folder, packed.Config{Bytes: true})); err != nil {
		t.Fatal(err)
	}
	if _, err := packed.Open(filepath.Join(dir, "a-?")); err == nil || !strings.Contains(err.Error(), "write all files from one dataset") {
		t.Errorf("files of different examples: %v", err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(left) != 2 {
		t.Errorf("%v is left, %v", left, err)
	}
}

// TestRefusesAnyEpochs: a dataset that changes with the epoch is refused, even if it rarely does,
// or only its labels do.
func TestRefusesAnyEpochs(t *testing.T) {
	for seed := range uint64(20) {
		windows, err := data.Tokens("text", []int32{1, 2, 3, 4, 5, 6}, 2)
		if err != nil {
			t.Fatal(err)
		}
		err = packed.Write(filepath.Join(t.TempDir(), "x.packed"), windows.Seeded(seed), packed.Config{})
		if err == nil || !strings.Contains(err.Error(), "the examples of text differ between epochs") {
			t.Errorf("seed %d: the error is %v", seed, err)
		}
	}
	ds, err := data.Tensors("labels", []*tensors.Tensor{tensors.FromFlatDataAndDimensions([]int32{1, 2}, 2)}, []*tensors.Tensor{tensors.FromFlatDataAndDimensions([]int32{0, 1}, 2, 1)})
	if err != nil {
		t.Fatal(err)
	}
	err = packed.Write(filepath.Join(t.TempDir(), "x.packed"), relabelled{ds}, packed.Config{})
	if err == nil || !strings.Contains(err.Error(), "the examples of labels differ between epochs") {
		t.Errorf("with other labels in each epoch: %v", err)
	}
}

// relabelled has other labels in each epoch.
type relabelled struct{ data.Dataset }

func (r relabelled) EpochBatch(epoch int, indices []int) (inputs, labels []*tensors.Tensor, err error) {
	inputs, labels, err = r.Batch(indices)
	if err == nil {
		err = tensors.MutableFlatData(labels[0], func(flat []int32) { flat[0] = int32(epoch % 2) })
	}
	return inputs, labels, err
}

// TestNaN: examples with NaN are the same in all epochs.
func TestNaN(t *testing.T) {
	ds, err := data.Tensors("gaps", []*tensors.Tensor{tensors.FromFlatDataAndDimensions([]float32{1, float32(math.NaN())}, 2)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	set, err := packed.Keep(filepath.Join(t.TempDir(), "x.packed"), data.First(ds, 2), packed.Config{})
	if err != nil {
		t.Fatal(err)
	}
	inputs, _, err := set.Batch([]int{1, 0})
	if err != nil {
		t.Fatal(err)
	}
	if got := tensors.MustCopyFlatData[float32](inputs[0]); got[0] == got[0] || got[1] != 1 {
		t.Errorf("got %v, want NaN and 1", got)
	}
}

// autoencoded has its images as labels too: the same tensor.
type autoencoded struct{ data.Dataset }

func (a autoencoded) Batch(indices []int) (inputs, labels []*tensors.Tensor, err error) {
	inputs, _, err = a.Dataset.Batch(indices)
	return inputs, inputs, err
}

// TestInputIsLabel: a tensor may be both an input and a label.
func TestInputIsLabel(t *testing.T) {
	ds := autoencoded{photos(t, 20, 8)}
	for _, asBytes := range []bool{false, true} {
		set, err := packed.Keep(filepath.Join(t.TempDir(), "x.packed"), ds, packed.Config{Bytes: asBytes})
		if err != nil {
			t.Fatal(err)
		}
		same(t, set, ds)
	}
}

// TestFullDisk: too small a disk is noticed before the examples are decoded, and one that fills up
// meanwhile leaves nothing.
func TestFullDisk(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "small")
	tmpfs.Mount(t, dir, "size=64k")
	folder := photos(t, 40, 32)
	if err := packed.Write(filepath.Join(dir, "x"), folder, packed.Config{}); err == nil || !strings.Contains(err.Error(), "has room for 0.1 MB: free some") {
		t.Errorf("got %v", err)
	}
	other := filling{counted{photos(t, 15, 32), &atomic.Int64{}}, filepath.Join(dir, "other")}
	if err := packed.Write(filepath.Join(dir, "x"), other, packed.Config{Bytes: true}); err == nil || !strings.Contains(err.Error(), "no space left on device") {
		t.Errorf("got %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("%v is left, %v", left, err)
	}
}

// filling fills the disk once the examples are read for the file.
type filling struct {
	counted
	path string
}

func (f filling) Batch(indices []int) (inputs, labels []*tensors.Tensor, err error) {
	if f.read.Load() >= 1 { // The first one was read before, for the head.
		if err := os.WriteFile(f.path, make([]byte, 50_000), 0o666); err != nil {
			return nil, nil, err
		}
	}
	return f.counted.Batch(indices)
}

// BenchmarkBatch compares images of 400x400 pixels that are decoded and scaled to 224x224 with
// packed ones.
func BenchmarkBatch(b *testing.B) {
	source := photos(b, 64, 400)
	folder, err := data.ImageFolder(filepath.Dir(filepath.Dir(source.Path(0))), data.FolderConfig{Height: 224, Width: 224})
	if err != nil {
		b.Fatal(err)
	}
	set, err := packed.Keep(filepath.Join(b.TempDir(), "x"), folder, packed.Config{Bytes: true})
	if err != nil {
		b.Fatal(err)
	}
	indices := make([]int, 64)
	for i := range indices {
		indices[i] = i
	}
	for name, ds := range map[string]data.Dataset{"folder": folder, "packed": set} {
		b.Run(name, func(b *testing.B) {
			for range b.N {
				inputs, labels, err := ds.Batch(indices)
				if err != nil {
					b.Fatal(err)
				}
				load.Finalize(append(inputs, labels...))
			}
			b.ReportMetric(float64(64*b.N)/b.Elapsed().Seconds(), "images/s")
		})
	}
}
