package data_test

import (
	"bytes"
	"image/color"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/data"
)

// TestImageDecoder: an image has the same pixels as in an ImageFolder.
func TestImageDecoder(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "class"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a.png", "b.jpg", "c.gif"} {
		content := encoded(t, name, 21, 12, color.RGBA{R: 200, G: 90, B: 10, A: 255})
		if err := os.WriteFile(filepath.Join(dir, "class", name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, gray := range []bool{false, true} {
		folder, err := data.ImageFolder(dir, data.FolderConfig{Height: 8, Width: 6, Gray: gray})
		if err != nil {
			t.Fatal(err)
		}
		for i := range folder.Len() {
			want, _, err := folder.Batch([]int{i})
			if err != nil {
				t.Fatal(err)
			}
			content, err := os.ReadFile(folder.Path(i))
			if err != nil {
				t.Fatal(err)
			}
			decoder := data.ImageDecoder{Height: 8, Width: 6, Gray: gray}
			pixels := make([]float32, 8*6*decoder.Channels())
			if err := decoder.Decode(pixels, bytes.NewReader(content)); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(pixels, tensors.MustCopyFlatData[float32](want[0])) {
				t.Errorf("%s differs from the folder's", folder.Path(i))
			}
		}
	}
}

func TestImageDecoderRefuses(t *testing.T) {
	image := encoded(t, "a.png", 2, 2, color.White)
	for _, tt := range []struct {
		name    string
		decoder data.ImageDecoder
		pixels  int
		content []byte
		want    string
	}{
		{"no size", data.ImageDecoder{}, 0, image, "an image of 0x0x3 to 0 numbers"},
		{"no room", data.ImageDecoder{Height: 2, Width: 2}, 4, image, "an image of 2x2x3 to 4 numbers: it has 12"},
		{"no image", data.ImageDecoder{Height: 2, Width: 2, Gray: true}, 4, []byte("text"), "unknown format"},
		{"truncated", data.ImageDecoder{Height: 2, Width: 2, Gray: true}, 4, image[:len(image)-20], "unexpected EOF"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.decoder.Decode(make([]float32, tt.pixels), bytes.NewReader(tt.content))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}
