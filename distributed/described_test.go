package distributed_test

import (
	"bytes"
	"image"
	"image/jpeg"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gonbatch/data"
	"gonbatch/distributed"
	"gonbatch/distributed/ranktest"
	"gonbatch/internal/rundir"
)

// TestDescribedDatasets: rank 0 of a run says once what decodes the JPEGs, whatever uses them.
func TestDescribedDatasets(t *testing.T) {
	if ranktest.InRank() {
		useFolder(t, os.Getenv("PHOTOS"))
		return
	}
	dir := t.TempDir()
	var photo bytes.Buffer
	if err := jpeg.Encode(&photo, image.NewGray(image.Rect(0, 0, 4, 4)), nil); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "cats"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a.jpg", "b.jpg", "c.jpg", "d.jpg"} {
		if err := os.WriteFile(filepath.Join(dir, "cats", name), photo.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for run, times := range map[string]int{t.TempDir(): 1, "": 0} {
		out, err := ranktest.Start(t, ranktest.Torchrun, 2, []string{"PHOTOS=" + dir, rundir.EnvDir + "=" + run})
		if n := strings.Count(out, "gonbatch: JPEGs of photos are decoded by "); err != nil || n != times {
			t.Errorf("run %q: said %d times, want %d: %v\n%s", run, n, times, err, out)
		}
	}
}

// useFolder uses a folder of images in a loader, and in parts outside of it.
func useFolder(t *testing.T, dir string) {
	w := initWorld(t)
	photos, err := data.ImageFolder(dir, data.FolderConfig{Name: "photos"})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		l, err := w.Loader(photos, distributed.LoaderOptions{BatchSize: 2})
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range l.Iter() {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, err := range w.Batches(data.First(photos, 2), 0, 2, distributed.EvaluateOptions{BatchSize: 1}) {
		if err != nil {
			t.Fatal(err)
		}
	}
}
