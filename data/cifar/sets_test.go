package cifar_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/data"
	"gonbatch/data/cifar10"
	"gonbatch/data/cifar100"
)

// TestSets reads a few gray images in the format of the published files, one of each class.
func TestSets(t *testing.T) {
	for _, tt := range []struct {
		name, dir, folder string
		testing           string
		training          []string
		labels            int // Bytes before the pixels.
		classes           []string
		mean, std         []float32
		load              func(context.Context) (train, test *data.Images, err error)
		loadFrom          func(string) (train, test *data.Images, err error)
	}{
		{
			"CIFAR-10", "cifar10", "cifar-10-batches-bin", "test_batch.bin",
			[]string{"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin"},
			1, cifar10.Classes(), cifar10.Mean(), cifar10.Std(), cifar10.Load, cifar10.LoadFrom,
		},
		{
			"CIFAR-100", "cifar100", "cifar-100-binary", "test.bin", []string{"train.bin"},
			2, cifar100.Classes(), cifar100.Mean(), cifar100.Std(), cifar100.Load, cifar100.LoadFrom,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root := t.TempDir()
			t.Setenv("GONBATCH_DATA", root)
			folder := filepath.Join(root, tt.dir, tt.folder)
			if err := os.MkdirAll(folder, 0o755); err != nil {
				t.Fatal(err)
			}
			var content []byte
			for class := range tt.classes {
				content = append(content, bytes.Repeat([]byte{byte(class)}, tt.labels+3*32*32)...)
			}
			for _, name := range append(tt.training, tt.testing) {
				if err := os.WriteFile(filepath.Join(folder, name), content, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			train, test, err := tt.load(t.Context())
			n := len(tt.classes)
			if err != nil || train.Len() != len(tt.training)*n || test.Len() != n || train.Classes() != n {
				t.Fatalf("%v, %v, %v", train, test, err)
			}
			if from, _, err := tt.loadFrom(folder); err != nil || from.Len() != train.Len() {
				t.Errorf("LoadFrom: %v, %v", from, err)
			}
			inputs, labels, err := test.Batch([]int{7})
			if err != nil {
				t.Fatal(err)
			}
			class, pixel := tensors.MustCopyFlatData[int32](labels[0])[0], tensors.MustCopyFlatData[float32](inputs[0])[1]
			if want := (7./255 - tt.mean[1]) / tt.std[1]; class != 7 || pixel != want {
				t.Errorf("class %d, green %v, want 7 and %v", class, pixel, want)
			}
		})
	}
}
