package mnist_test

import (
	"context"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/google/go-cmp/cmp"

	"gonbatch/data"
	"gonbatch/data/mnist"
)

// The real files: cached for the user, downloaded the first time.
func TestLoad(t *testing.T) {
	train, test, err := mnist.Load(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		set       *data.Images
		name      string
		n         int
		histogram [10]int
		first     []int32
	}{
		{train, "mnist-train", 60000, [10]int{5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949}, []int32{5, 0, 4, 1, 9}},
		{test, "mnist-test", 10000, [10]int{980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009}, []int32{7, 2, 1, 0, 4}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if tc.set.Name() != tc.name || tc.set.Len() != tc.n || tc.set.Classes() != 10 {
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
			var got [10]int
			var first []int32
			err = tensors.ConstFlatData(labels[0], func(flat []int32) {
				first = append(first, flat[:5]...)
				for _, l := range flat {
					got[l]++
				}
			})
			if diff := cmp.Diff(tc.histogram, got) + cmp.Diff(tc.first, first); diff != "" || err != nil {
				t.Errorf("labels, error %v (-want +got):\n%s", err, diff)
			}
			mean, std := moments(t, inputs[0])
			if math.Abs(mean) > 0.01 || math.Abs(std-1) > 0.01 {
				t.Errorf("normalised pixels have mean %.4f and standard deviation %.4f, want 0 and 1", mean, std)
			}
		})
	}
}

func moments(t *testing.T, x *tensors.Tensor) (mean, std float64) {
	t.Helper()
	var n, sum, squares float64
	err := tensors.ConstFlatData(x, func(flat []float32) {
		n = float64(len(flat))
		for _, v := range flat {
			sum += float64(v)
			squares += float64(v) * float64(v)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	mean = sum / n
	return mean, math.Sqrt(squares/n - mean*mean)
}

// idx returns an IDX file with these sizes and values that count from 0 and repeat at below.
func idx(below int, size ...int) []byte {
	b := []byte{0, 0, 8, byte(len(size))}
	n := 1
	for _, s := range size {
		b = binary.BigEndian.AppendUint32(b, uint32(s))
		n *= s
	}
	for i := range n {
		b = append(b, byte(i%below))
	}
	return b
}

func TestLoadFrom(t *testing.T) {
	good := map[string][]byte{
		"train-images-idx3-ubyte": idx(256, 3, 28, 28), "train-labels-idx1-ubyte": idx(10, 3),
		"t10k-images-idx3-ubyte": idx(256, 2, 28, 28), "t10k-labels-idx1-ubyte": idx(10, 2),
	}
	tests := []struct {
		name, file string
		content    []byte // nil: the file is missing
		wantErr    []string
	}{
		{name: "fine"},
		{name: "missing", file: "t10k-labels-idx1-ubyte", wantErr: []string{"t10k-labels-idx1-ubyte", "no such file", "mnist.Fetch downloads it"}},
		{name: "truncated", file: "train-images-idx3-ubyte", content: idx(256, 3, 28, 28)[:100], wantErr: []string{"train-images-idx3-ubyte", "truncated: 84 of 2352"}},
		{name: "other size of image", file: "train-images-idx3-ubyte", content: idx(256, 3, 32, 32), wantErr: []string{"images of 32x32 pixels, not 28x28"}},
		{name: "labels missing", file: "train-labels-idx1-ubyte", content: idx(10, 2), wantErr: []string{"has 3 images, but train-labels-idx1-ubyte has 2 labels"}},
		{name: "label too large", file: "t10k-labels-idx1-ubyte", content: append(idx(10, 2)[:9], 10), wantErr: []string{"image 1 has label 10"}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, content := range good {
				if name == tc.file {
					if content = tc.content; content == nil {
						continue
					}
				}
				if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			train, test, err := mnist.LoadFrom(dir)
			if tc.wantErr == nil {
				if err != nil || train.Len() != 3 || test.Len() != 2 {
					t.Errorf("%v, %v, %v", train, test, err)
				}
				return
			}
			for _, want := range tc.wantErr {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("error %v lacks %q", err, want)
				}
			}
		})
	}
}

// Files of the right size but with other content, such as Fashion-MNIST's, must not be accepted as
// MNIST.
func TestLoadRefusesOtherContent(t *testing.T) {
	t.Setenv("GONBATCH_DATA", t.TempDir())
	dir := mnist.Dir(os.Getenv)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{
		"train-images-idx3-ubyte": idx(256, 60000, 28, 28), "train-labels-idx1-ubyte": idx(10, 60000),
		"t10k-images-idx3-ubyte": idx(256, 10000, 28, 28), "t10k-labels-idx1-ubyte": idx(10, 10000),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	_, _, err := mnist.Load(context.Background())
	if err == nil || !strings.Contains(err.Error(), "is not MNIST's file") || !strings.Contains(err.Error(), "remove it") {
		t.Errorf("error %v", err)
	}
	if _, _, err := mnist.LoadFrom(dir); err != nil {
		t.Errorf("LoadFrom takes any set: %v", err)
	}
}

func BenchmarkLoadCached(b *testing.B) {
	if err := mnist.Fetch(context.Background(), mnist.Dir(os.Getenv), os.Stderr); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, _, err := mnist.Load(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkFetchCached(b *testing.B) {
	dir := mnist.Dir(os.Getenv)
	for b.Loop() {
		if err := mnist.Fetch(context.Background(), dir, nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkBatch64(b *testing.B) {
	train, _, err := mnist.Load(context.Background())
	if err != nil {
		b.Fatal(err)
	}
	indices := make([]int, 64)
	for step := 0; b.Loop(); step++ {
		for i := range indices {
			indices[i] = (step*64 + i) * 7919 % train.Len() // Far apart, as in a shuffled order.
		}
		if _, _, err := train.Batch(indices); err != nil {
			b.Fatal(err)
		}
	}
}
