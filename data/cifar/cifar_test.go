package cifar

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gonbatch/internal/fetch"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/google/go-cmp/cmp"
)

// small returns a set of two files with two images for training, and one with one for testing, and
// their content. Images have two labels, of which the second one is the class.
func small() (Set, map[string][]byte) {
	set := Set{
		Package: "small", Title: "Small", Folder: "small-bin",
		Train:  []string{"a.bin", "b.bin"},
		Test:   []string{"test.bin"},
		Labels: 2, Classes: 3, Mean: []float32{0, 0, 0}, Std: []float32{1, 1, 1},
	}
	return set, map[string][]byte{"a.bin": image(9, 0), "b.bin": image(9, 1), "test.bin": image(9, 2)}
}

// image returns an image with its labels: its first row has the numbers 0 to 31 in red, 100 to 131
// in green and 200 to 231 in blue.
func image(labels ...byte) []byte {
	content := append(labels, make([]byte, channels*plane)...)
	for i := range Side {
		for channel := range channels {
			content[len(labels)+channel*plane+i] = byte(100*channel + i)
		}
	}
	return content
}

// pack adds the archive of files to a set. Its server counts requests, and can resume.
func pack(t *testing.T, set Set, files map[string][]byte) (Set, []byte, *atomic.Int32) {
	t.Helper()
	var archive bytes.Buffer
	z := gzip.NewWriter(&archive)
	w := tar.NewWriter(z)
	for name, content := range files {
		head := tar.Header{Name: set.Folder + "/" + name, Mode: 0o644, Size: int64(len(content))}
		if err := w.WriteHeader(&head); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	var requests atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		if r.URL.Path != "/kriz/small.tar.gz" {
			http.NotFound(w, r)
			return
		}
		http.ServeContent(w, r, "small.tar.gz", time.Time{}, bytes.NewReader(archive.Bytes()))
	}))
	t.Cleanup(server.Close)
	sum := sha256.Sum256(archive.Bytes())
	set.Archive = fetch.Source{Name: "small.tar.gz", Size: int64(archive.Len()), SHA256: hex.EncodeToString(sum[:]), URLs: []string{server.URL + "/kriz/small.tar.gz"}}
	return set, archive.Bytes(), &requests
}

// lay writes files to a folder.
func lay(t *testing.T, dir string, files map[string][]byte) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// checkLoad checks that dir has the small set.
func checkLoad(t *testing.T, set Set, dir string) {
	t.Helper()
	train, test, err := set.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if train.Len() != 2 || test.Len() != 1 || train.Name() != "small-train" || test.Name() != "small-test" {
		t.Fatalf("%s has %d images, %s %d", train.Name(), train.Len(), test.Name(), test.Len())
	}
	inputs, labels, err := train.Batch([]int{1, 0})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int{2, Side, Side, channels}, inputs[0].Shape().Dimensions); diff != "" {
		t.Errorf("shape (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int32{1, 0}, tensors.MustCopyFlatData[int32](labels[0])); diff != "" {
		t.Errorf("classes (-want +got):\n%s", diff)
	}
	pixels := tensors.MustCopyFlatData[float32](inputs[0])
	if got := pixels[5*channels:][:channels]; cmp.Diff([]float32{5. / 255, 105. / 255, 205. / 255}, got) != "" {
		t.Errorf("pixel 5 of the first row is %v, want 5, 105 and 205 of 255", got)
	}
	if got := pixels[Side*channels:][:channels]; cmp.Diff([]float32{0, 0, 0}, got) != "" {
		t.Errorf("the first pixel of the second row is %v, want black", got)
	}
}

// The archive is downloaded once, however many ask for it at once, and removed.
func TestFetchDownloads(t *testing.T) {
	set, files := small()
	set, _, requests := pack(t, set, files)
	dir := filepath.Join(t.TempDir(), "new", "small")
	var said bytes.Buffer
	var group sync.WaitGroup
	for i := range 4 {
		group.Go(func() {
			var progress io.Writer
			if i == 0 {
				progress = &said
			}
			if err := set.Fetch(context.Background(), dir, progress); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if n := requests.Load(); n != 1 {
		t.Errorf("%d requests, want 1", n)
	}
	if _, err := os.Stat(filepath.Join(dir, "small.tar.gz")); err == nil {
		t.Error("the archive is left")
	}
	if err := set.Fetch(context.Background(), dir, nil); err != nil || requests.Load() != 1 {
		t.Errorf("the second time: %v, %d requests", err, requests.Load())
	}
	checkLoad(t, set, dir)
}

// TestFetchFromMirror: if the first address fails, however it fails, the archive comes from the
// second, and must have the same checksum.
func TestFetchFromMirror(t *testing.T) {
	closed := httptest.NewServer(nil)
	closed.Close()
	missing := httptest.NewServer(http.NotFoundHandler())
	defer missing.Close()
	login := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") }))
	defer login.Close()
	set, files := small()
	set, archive, _ := pack(t, set, files)
	damaged := bytes.Clone(archive)
	damaged[len(damaged)-6]++
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(damaged) }))
	defer other.Close()
	for name, address := range map[string]string{"no connection": closed.URL, "not found": missing.URL, "a login page": login.URL, "another archive": other.URL} {
		t.Run(name, func(t *testing.T) {
			set, dir := set, t.TempDir()
			mirror := set.Archive.URLs[0]
			set.Archive.URLs = []string{address + "/kriz/small.tar.gz", mirror}
			if err := set.Fetch(context.Background(), dir, nil); err != nil {
				t.Fatal(err)
			}
			checkLoad(t, set, dir)
			set.Archive.URLs = []string{address + "/kriz/small.tar.gz", address + "/mirror/small.tar.gz"}
			err := set.Fetch(context.Background(), t.TempDir(), nil)
			for _, way := range set.Archive.URLs {
				if err == nil || !strings.Contains(err.Error(), way) {
					t.Errorf("without a mirror: %v; want an error that names %s", err, way)
				}
			}
		})
	}
}

// What the user has put there is used, and left there.
func TestFetchTakesWhatIsThere(t *testing.T) {
	for _, tc := range []struct{ name, folder, archive string }{
		{name: "the files", folder: "."}, {name: "the folder", folder: "small-bin"}, {name: "the archive", archive: "small.tar.gz"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			set, files := small()
			set, archive, requests := pack(t, set, files)
			dir := t.TempDir()
			if tc.folder != "" {
				lay(t, filepath.Join(dir, tc.folder), files)
			} else {
				lay(t, dir, map[string][]byte{tc.archive: archive})
			}
			if err := set.Fetch(context.Background(), dir, nil); err != nil || requests.Load() != 0 {
				t.Fatalf("%v, %d requests", err, requests.Load())
			}
			if _, err := os.Stat(filepath.Join(dir, tc.archive)); err != nil {
				t.Error(err)
			}
			checkLoad(t, set, dir)
		})
	}
}

func TestFetchRefuses(t *testing.T) {
	set, files := small()
	set, archive, _ := pack(t, set, files)
	damaged := bytes.Clone(archive)
	damaged[len(damaged)-6]++ // In gzip's checksum, behind the last file.
	closed := httptest.NewServer(nil)
	closed.Close()
	for _, tc := range []struct {
		name   string
		change func(*Set)
		there  map[string][]byte
		want   []string
	}{
		{
			name: "no network", change: func(s *Set) { s.Archive.URLs = []string{closed.URL + "/kriz/small.tar.gz"} },
			want: []string{"small: cannot get small.tar.gz", closed.URL + "/kriz/small.tar.gz: cannot connect", "fix: download it elsewhere", "put it at DIR/small.tar.gz", "SHA-256", "copy or link it to DIR/small-bin"},
		},
		{name: "another archive", change: func(s *Set) { s.Archive.SHA256 = strings.Repeat("0", 64) }, want: []string{"wrong checksum"}},
		{name: "a damaged archive", there: map[string][]byte{"small.tar.gz": damaged}, want: []string{"wrong checksum: DIR/small.tar.gz has SHA-256", "remove it, and it is downloaded again"}},
		{
			name: "a part of the archive, no network", change: func(s *Set) { s.Archive.URLs = []string{closed.URL + "/kriz/small.tar.gz"} },
			there: map[string][]byte{"small.tar.gz": archive[:100]},
			want:  []string{fmt.Sprintf("the file that is at DIR/small.tar.gz has 100 bytes, not %d", len(archive))},
		},
		{name: "an archive without a file", change: func(s *Set) { s.Test = []string{"other.bin"} }, want: []string{`no member "small-bin/other.bin"`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			set, dir := set, t.TempDir()
			if tc.change != nil {
				tc.change(&set)
			}
			lay(t, dir, tc.there)
			err := set.Fetch(context.Background(), dir, nil)
			for _, want := range tc.want {
				if want = strings.ReplaceAll(want, "DIR", dir); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("error lacks %q:\n%v", want, err)
				}
			}
		})
	}
}

// TestFetchKeepsTheArchive: if the files can't be written, the next call need not download again.
func TestFetchKeepsTheArchive(t *testing.T) {
	set, files := small()
	set, _, requests := pack(t, set, files)
	dir := t.TempDir()
	obstacle := filepath.Join(dir, "small-bin", "b.bin", "folder")
	if err := os.MkdirAll(obstacle, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := set.Fetch(context.Background(), dir, nil); err == nil || !strings.Contains(err.Error(), "b.bin") {
		t.Errorf("error %v, want one that names b.bin", err)
	}
	if err := os.RemoveAll(filepath.Dir(obstacle)); err != nil {
		t.Fatal(err)
	}
	if err := set.Fetch(context.Background(), dir, nil); err != nil || requests.Load() != 1 {
		t.Errorf("the second time: %v, %d requests", err, requests.Load())
	}
	checkLoad(t, set, dir)
}

func TestLoadRefuses(t *testing.T) {
	for _, tc := range []struct {
		name    string
		content []byte // Of b.bin; nil: it is missing.
		want    []string
	}{
		{"missing", nil, []string{"lacks Small's files, a.bin to test.bin, also in small-bin", "small.Fetch downloads them"}},
		{"empty", []byte{}, []string{"b.bin: 0 bytes are not a whole number"}},
		{"truncated", image(9, 1)[:100], []string{"b.bin: 100 bytes are not a whole number of images of 3074 bytes", "remove it"}},
		{"large class", image(9, 3), []string{"b.bin: image 1 has class 3; the largest is 2"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			set, files := small()
			files["b.bin"] = tc.content
			if tc.content == nil {
				delete(files, "b.bin")
			}
			dir := t.TempDir()
			lay(t, dir, files)
			_, _, err := set.Load(dir)
			for _, want := range tc.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("error %v lacks %q", err, want)
				}
			}
		})
	}
}

// FuzzParse checks that any content is either refused or has pixels for each label.
func FuzzParse(f *testing.F) {
	set, files := small()
	f.Add(files["a.bin"])
	f.Add([]byte("<html>"))
	f.Fuzz(func(t *testing.T, content []byte) {
		pixels, classes, err := set.parse(content, nil, nil)
		if err == nil && (len(classes) == 0 || len(pixels) != len(classes)*channels*plane) {
			t.Errorf("%d bytes of pixels for %d labels", len(pixels), len(classes))
		}
	})
}
