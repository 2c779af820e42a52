package cifar10

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"
)

// TestLoad reads a few gray images in the format of the files, one of each class.
func TestLoad(t *testing.T) {
	t.Setenv("GONBATCH_DATA", t.TempDir())
	folder := filepath.Join(Dir(os.Getenv), "cifar-10-batches-bin")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	var content []byte
	for class := range Classes() {
		content = append(content, bytes.Repeat([]byte{byte(class)}, 1+3*32*32)...)
	}
	for _, f := range append(set.Train, set.Test...) {
		if err := os.WriteFile(filepath.Join(folder, f.Name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	train, test, err := Load(context.Background())
	if err != nil || train.Len() != len(set.Train)*len(Classes()) || test.Len() != 10 || train.Classes() != 10 {
		t.Fatalf("%v, %v, %v", train, test, err)
	}
	if from, _, err := LoadFrom(folder); err != nil || from.Len() != train.Len() {
		t.Errorf("LoadFrom: %v, %v", from, err)
	}
	inputs, labels, err := test.Batch([]int{7})
	if err != nil {
		t.Fatal(err)
	}
	class, pixel := tensors.MustCopyFlatData[int32](labels[0])[0], tensors.MustCopyFlatData[float32](inputs[0])[1]
	if want := (7./255 - Mean()[1]) / Std()[1]; class != 7 || pixel != want {
		t.Errorf("class %d, green %v, want 7 and %v", class, pixel, want)
	}
}

// The sizes are those that the dataset's page gives: 60,000 images, and an archive with a SHA-256.
func TestIdentity(t *testing.T) {
	images := 0
	for _, f := range append(set.Train, set.Test...) {
		images += f.Images
	}
	if images != 60000 || len(set.Archive.SHA256) != 64 || !strings.HasSuffix(set.Archive.Addresses[0], "/") {
		t.Errorf("%d images, %+v", images, set.Archive)
	}
}

func ExampleDir() {
	fmt.Println(Dir(func(name string) string { return map[string]string{"GONBATCH_DATA": "/scratch/data"}[name] }))
	// Output: /scratch/data/cifar10
}
