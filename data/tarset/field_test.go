package tarset_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"image"
	"image/color"
	"image/png"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/core/tensors/numpy"

	"gonbatch/data"
	"gonbatch/data/tarset"
)

// square returns a PNG of 2x2 pixels.
func square(t *testing.T, c color.Color) string {
	t.Helper()
	var file bytes.Buffer
	if err := png.Encode(&file, image.NewPaletted(image.Rect(0, 0, 2, 2), color.Palette{c})); err != nil {
		t.Fatal(err)
	}
	return file.String()
}

func array(t *testing.T, values [][]float64) string {
	t.Helper()
	var file bytes.Buffer
	if err := numpy.ToNpyWriter(tensors.FromValue(values), &file); err != nil {
		t.Fatal(err)
	}
	return file.String()
}

func TestFields(t *testing.T) {
	set, err := tarset.Open(filepath.Join(write(t, pack(t, tar.FormatPAX,
		member{name: "a.png", content: square(t, color.White)}, member{name: "a.cls", content: "3\n"}, member{name: "a.json", content: `{"x": 1.5, "y": -2, "name": "a"}`}, member{name: "a.npy", content: array(t, [][]float64{{1, 2}})},
		member{name: "b.cls", content: "0"}, member{name: "b.seg.png", content: "unused"}, member{name: "b.PNG", content: square(t, color.Black)}, member{name: "b.json", content: `{"y": 1e3, "x": 0}`}, member{name: "b.npy", content: array(t, [][]float64{{3, 4}})},
	)), "0.tar"), tarset.Config{
		Inputs: []tarset.Field{tarset.Image(data.ImageDecoder{Height: 2, Width: 1, Gray: true}), tarset.NumPy()},
		Labels: []tarset.Field{tarset.Class(), tarset.JSON("", "y", "x")},
	})
	if err != nil {
		t.Fatal(err)
	}
	if set.Name() != "0" || set.Len() != 2 {
		t.Errorf("%s has %d samples", set.Name(), set.Len())
	}
	x, y, err := set.Batch([]int{1, 0, 1})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"(Float32)[3, 2, 1, 1]", "(Float64)[3, 1, 2]", "(Int32)[3, 1]", "(Float32)[3, 2]"} {
		if got := slices.Concat(x, y)[i].Shape().String(); got != want {
			t.Errorf("tensor %d is %s, want %s", i, got, want)
		}
	}
	if got := tensors.MustCopyFlatData[float32](x[0]); !slices.Equal(got, []float32{0, 0, 1, 1, 0, 0}) {
		t.Errorf("pixels %v", got)
	}
	if got := tensors.MustCopyFlatData[float64](x[1]); !slices.Equal(got, []float64{3, 4, 1, 2, 3, 4}) {
		t.Errorf("arrays %v", got)
	}
	if got := tensors.MustCopyFlatData[int32](y[0]); !slices.Equal(got, []int32{0, 3, 0}) {
		t.Errorf("classes %v", got)
	}
	if got := tensors.MustCopyFlatData[float32](y[1]); !slices.Equal(got, []float32{1000, 0, -2, 1.5, 1000, 0}) {
		t.Errorf("numbers %v", got)
	}
}

// TestFieldErrors: an error names the shard, the sample, the field and the member.
func TestFieldErrors(t *testing.T) {
	dir := write(t, pack(t, tar.FormatPAX,
		member{name: "n/a.cls", content: "cat"}, member{name: "n/a.json", content: "{"}, member{name: "n/a.png", content: "no image"}, member{name: "n/a.npy", content: "no array"},
		member{name: "n/b.cls", content: "-1"}, member{name: "n/b.json", content: `{"x": "1", "y": 1e39}`}, member{name: "n/b.bin", content: "xy"}, member{name: "n/c.bin", content: "x"}))
	pixels := data.ImageDecoder{Height: 1, Width: 1}
	tests := []struct {
		name    string
		field   tarset.Field
		indices []int
		want    string
	}{
		{"class", tarset.Class(), []int{0}, `sample "n/a" of ` + dir + `/0.tar: input 0: .cls: "cat" is not the number of a class`},
		{"negative class", tarset.Class(), []int{1}, `sample "n/b" of ` + dir + `/0.tar: input 0: .cls: "-1" is not`},
		{"missing", tarset.Class(), []int{2}, `it has no member .cls, only .bin`},
		{"missing image", tarset.Image(pixels), []int{2}, `it has no member .jpg or .jpeg or .png or .gif, only .bin`},
		{"image", tarset.Image(pixels), []int{0}, ".png: image: unknown format"},
		{"image without a size", tarset.Image(data.ImageDecoder{}), []int{0}, "set Height and Width"},
		{"array", tarset.NumPy(), []int{0}, ".npy: invalid .npy file"},
		{"broken JSON", tarset.JSON("json", "x"), []int{0}, ".json: unexpected end"},
		{"text in JSON", tarset.JSON("json", "x"), []int{1}, `"x" is 1: it must be a number`},
		{"nothing in JSON", tarset.JSON("json", "z"), []int{1}, `"z" is <nil>: it must be a number`},
		{"large JSON", tarset.JSON("json", "y"), []int{1}, `"y" is 1e+39: it must be a number that fits`},
		{"sizes", content, []int{1, 2}, "input 0 of sample 1 is (Uint8)[2], and of sample 2 (Uint8)[1]: all must have one shape"},
		{"nil", func(*tarset.Sample) (*tensors.Tensor, error) { return nil, nil }, []int{0}, "returned no tensor"},
		{"panic", func(*tarset.Sample) (*tensors.Tensor, error) { panic("oh") }, []int{0}, "input 0: panic: oh"},
		{"own error", func(*tarset.Sample) (*tensors.Tensor, error) { return nil, errors.New("own") }, []int{0}, "input 0: own"},
		{"no such sample", content, []int{3}, "no sample 3; there are 0 to 2"},
		{"nothing", content, nil, "a batch of no examples"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			set, err := tarset.Open(filepath.Join(dir, "0.tar"), tarset.Config{Name: "set", Inputs: []tarset.Field{tt.field}})
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := set.Batch(tt.indices); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}
