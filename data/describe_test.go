package data_test

import (
	"strings"
	"testing"

	"gonbatch/data"
)

// TestDescribe: a folder says what decodes its JPEGs, even in a part of it; other datasets say
// nothing.
func TestDescribe(t *testing.T) {
	folder := func(images ...string) *data.Folder {
		dir := t.TempDir()
		for _, name := range images {
			writeFile(t, encoded(t, name, 2, 2, red), dir, "one", name)
		}
		ds, err := data.ImageFolder(dir, data.FolderConfig{Name: "photos"})
		if err != nil {
			t.Fatal(err)
		}
		return ds
	}
	photos := folder("a.png", "b.JPG", "c.png")
	parts, err := data.SplitCounts(data.Serial(photos), 1, 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	other, err := data.NewImages(small())
	if err != nil {
		t.Fatal(err)
	}
	decoder, _, _ := strings.Cut(data.JPEGDecoder(), "\n")
	for name, test := range map[string]struct {
		ds   data.Dataset
		want string
	}{
		"a folder":          {photos, "JPEGs of photos are decoded by " + decoder},
		"in other datasets": {data.Augment(data.First(parts[1], 1), 1, data.RandomFlip(0.5)), "JPEGs of photos are decoded by " + decoder},
		"without a library": {photos.WithTurbo(nil), "JPEGs of photos are decoded by " + decoder},
		"no JPEGs":          {folder("a.png"), ""},
		"other images":      {other, ""},
	} {
		if got := data.Describe(test.ds); got != test.want || strings.Contains(got, "\n") {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
