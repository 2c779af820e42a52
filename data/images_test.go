package data_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/google/go-cmp/cmp"

	"gonbatch/data"
)

// small returns the configuration of three images of 1x2 pixels with two channels.
func small() data.ImagesConfig {
	return data.ImagesConfig{
		Name: "small", Height: 1, Width: 2, Channels: 2, Classes: 3,
		Pixels: []uint8{0, 51, 102, 153, 204, 255, 0, 255, 51, 51, 51, 51},
		Labels: []uint8{2, 0, 1},
		Mean:   []float32{0, 0.2}, Std: []float32{1, 0.4},
	}
}

func TestImagesBatch(t *testing.T) {
	d, err := data.NewImages(small())
	if err != nil {
		t.Fatal(err)
	}
	if d.Name() != "small" || d.Len() != 3 || d.Classes() != 3 {
		t.Errorf("name %q, %d examples, %d classes", d.Name(), d.Len(), d.Classes())
	}
	tests := []struct {
		name    string
		indices []int
		pixels  []float32
		labels  []int32
		wantErr string
	}{
		{name: "one", indices: []int{0}, pixels: []float32{0, 0, 0.4, 1}, labels: []int32{2}},
		{name: "order and repetition", indices: []int{2, 0, 2},
			pixels: []float32{0.2, 0, 0.2, 0, 0, 0, 0.4, 1, 0.2, 0, 0.2, 0}, labels: []int32{1, 2, 1}},
		{name: "last", indices: []int{1}, pixels: []float32{0.8, 2, 0, 2}, labels: []int32{0}},
		{name: "none", wantErr: "small: a batch of no examples"},
		{name: "negative", indices: []int{0, -1}, wantErr: "small: no example -1; there are 0 to 2"},
		{name: "too large", indices: []int{3}, wantErr: "small: no example 3; there are 0 to 2"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			inputs, labels, err := d.Batch(tc.indices)
			if tc.wantErr != "" {
				if err == nil || err.Error() != tc.wantErr {
					t.Errorf("error %v, want %q", err, tc.wantErr)
				}
				return
			}
			if err != nil || len(inputs) != 1 || len(labels) != 1 {
				t.Fatalf("%d inputs, %d labels, %v", len(inputs), len(labels), err)
			}
			n := len(tc.indices)
			if got, want := inputs[0].Shape().String(), fmt.Sprintf("(Float32)[%d, 1, 2, 2]", n); got != want {
				t.Errorf("inputs %s, want %s", got, want)
			}
			if got, want := labels[0].Shape().String(), fmt.Sprintf("(Int32)[%d, 1]", n); got != want {
				t.Errorf("labels %s, want %s", got, want)
			}
			near := cmp.Comparer(func(a, b float32) bool { return math.Abs(float64(a-b)) < 1e-6 })
			if diff := cmp.Diff(tc.pixels, flat[float32](t, inputs[0]), near); diff != "" {
				t.Errorf("pixels (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.labels, flat[int32](t, labels[0])); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
		})
	}
}

func flat[T float32 | int32](t *testing.T, x *tensors.Tensor) []T {
	t.Helper()
	var out []T
	if err := tensors.ConstFlatData(x, func(f []T) { out = append(out, f...) }); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestNewImagesRefuses(t *testing.T) {
	tests := []struct {
		name   string
		change func(c *data.ImagesConfig)
		want   string
	}{
		{"no size", func(c *data.ImagesConfig) { c.Height = 0 }, "must be positive, not 0, 2, 2"},
		{"no images", func(c *data.ImagesConfig) { c.Labels, c.Pixels = nil, nil }, "no images"},
		{"pixels missing", func(c *data.ImagesConfig) { c.Pixels = c.Pixels[1:] }, "11 bytes of pixels for 3 labels; images of 1x2x2 need 12"},
		{"no classes", func(c *data.ImagesConfig) { c.Classes = 0 }, "classes must be positive, not 0"},
		{"label too large", func(c *data.ImagesConfig) { c.Classes = 2 }, "image 0 has label 2; with 2 classes the largest is 1"},
		{"means", func(c *data.ImagesConfig) { c.Mean = c.Mean[:1] }, "1 mean for 2 channels"},
		{"deviations", func(c *data.ImagesConfig) { c.Std = []float32{1, 1, 1} }, "3 standard deviations for 2 channels"},
		{"zero deviation", func(c *data.ImagesConfig) { c.Std = []float32{1, 0} }, "channel 1 must be positive, not 0"},
		{"no deviation", func(c *data.ImagesConfig) { c.Std = []float32{float32(math.NaN()), 1} }, "channel 0 must be positive, not NaN"},
		{"infinite deviation", func(c *data.ImagesConfig) { c.Std = []float32{1, float32(math.Inf(1))} }, "channel 1 must be positive, not +Inf"},
		{"no mean", func(c *data.ImagesConfig) { c.Mean = []float32{0, float32(math.NaN())} }, "the mean of channel 1 must be a finite number, not NaN"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			c := small()
			tc.change(&c)
			_, err := data.NewImages(c)
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.HasPrefix(err.Error(), `images "small": `) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

func TestDir(t *testing.T) {
	tests := []struct {
		name string
		env  map[string]string
		want string
	}{
		{"set", map[string]string{"GONBATCH_DATA": "/scratch/data", "HOME": "/home/ada"}, "/scratch/data"},
		{"the user's cache", map[string]string{"XDG_CACHE_HOME": "/cache"}, "/cache/gonbatch/data"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if got := data.Dir(func(k string) string { return tc.env[k] }); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestNormalized(t *testing.T) {
	d, err := data.NewImages(small())
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name      string
		mean, std []float32
		want      []float32
		wantErr   string
	}{
		{name: "not at all", want: []float32{0, 0.2, 0.4, 0.6}},
		{name: "another way", mean: []float32{0, 0.2}, std: []float32{0.5, 1}, want: []float32{0, 0, 0.8, 0.4}},
		{name: "too few means", mean: []float32{0.5}, wantErr: `images "small": 1 mean for 2 channels`},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			n, err := d.Normalized(tc.mean, tc.std)
			if tc.wantErr != "" {
				if err == nil || err.Error() != tc.wantErr {
					t.Errorf("error %v, want %q", err, tc.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			inputs, _, err := n.Batch([]int{0})
			if err != nil {
				t.Fatal(err)
			}
			for i, got := range tensors.MustCopyFlatData[float32](inputs[0]) {
				if math.Abs(float64(got-tc.want[i])) > 1e-6 {
					t.Errorf("value %d is %g, want %g", i, got, tc.want[i])
				}
			}
		})
	}
}

func BenchmarkImagesBatch64(b *testing.B) {
	const n = 10_000
	c := data.ImagesConfig{Name: "bench", Height: 28, Width: 28, Channels: 1, Classes: 10,
		Pixels: make([]uint8, n*28*28), Labels: make([]uint8, n)}
	for i := range c.Pixels {
		c.Pixels[i] = uint8(i * 31)
	}
	d, err := data.NewImages(c)
	if err != nil {
		b.Fatal(err)
	}
	indices := make([]int, 64)
	for i := range indices {
		indices[i] = i * 7919 % n
	}
	b.SetBytes(64 * 28 * 28)
	for b.Loop() {
		if _, _, err := d.Batch(indices); err != nil {
			b.Fatal(err)
		}
	}
}

func ExampleNewImages() {
	d, err := data.NewImages(data.ImagesConfig{
		Name: "two pixels", Height: 1, Width: 1, Channels: 1, Classes: 2,
		Pixels: []uint8{0, 255}, Labels: []uint8{0, 1},
		Mean: []float32{0.5}, Std: []float32{0.5},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	inputs, labels, err := d.Batch([]int{1, 0})
	fmt.Println(inputs[0].Value(), labels[0].Value(), err)
	// Output: [[[[1]]] [[[-1]]]] [[1] [0]] <nil>
}
