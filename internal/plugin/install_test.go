package plugin

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gonbatch/internal/bounded"
	"gonbatch/internal/rundir"
)

// compile builds a shared library from C.
func compile(t *testing.T, source string) []byte {
	t.Helper()
	dir := t.TempDir()
	c, so := filepath.Join(dir, "a.c"), filepath.Join(dir, "a.so")
	if err := os.WriteFile(c, []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := bounded.CombinedOutput(exec.Command("cc", "-shared", "-fPIC", "-o", so, c)); err != nil {
		t.Fatalf("cc: %v\n%s", err, out)
	}
	b, err := os.ReadFile(so)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

const pluginSource = `#include <stdio.h>
void *GetPjrtApi(void) { puts("hello"); return 0; }`

// replace replaces the ways of a platform during a test.
func replace(t *testing.T, platform string, w ...way) {
	t.Helper()
	before := ways[platform]
	ways[platform] = w
	t.Cleanup(func() { ways[platform] = before })
}

// options returns the options of a user with an empty home.
func options(t *testing.T) Options {
	t.Helper()
	home := t.TempDir()
	return Options{Platform: CPU, Getenv: func(key string) string {
		return map[string]string{"HOME": home}[key]
	}}
}

func fails(version string) way {
	return way{version: version, what: "way " + version, get: func(context.Context, string, Options) error {
		return errors.New("is closed")
	}}
}

func gives(version string, content []byte, calls *atomic.Int32) way {
	return way{version: version, what: "way " + version, get: func(_ context.Context, path string, _ Options) error {
		calls.Add(1)
		time.Sleep(20 * time.Millisecond)
		return os.WriteFile(path, content, 0o644)
	}}
}

func TestEnsureInstalls(t *testing.T) {
	good := compile(t, pluginSource)
	foreign := bytes.Clone(good)
	foreign[18] = 0xf3 // ELF's e_machine: RISC-V.
	tests := []struct {
		name    string
		ways    func(n *atomic.Int32) []way
		want    string // last element of the folder
		wantErr []string
	}{
		{name: "first way", want: "cpu-1",
			ways: func(n *atomic.Int32) []way { return []way{gives("1", good, n), fails("2")} }},
		{name: "second way", want: "cpu-2",
			ways: func(n *atomic.Int32) []way { return []way{fails("1"), gives("2", good, n)} }},
		{name: "second way, as the first gives no plugin", want: "cpu-2",
			ways: func(n *atomic.Int32) []way {
				return []way{gives("1", compile(t, "int other;"), new(atomic.Int32)), gives("2", good, n)}
			}},
		{name: "no way", wantErr: []string{"cannot get XLA's plugin pjrt_c_api_cpu_plugin.so", "way 1: is closed", "way 2: is closed", "fix:", rundir.EnvPluginDir},
			ways: func(*atomic.Int32) []way { return []way{fails("1"), fails("2")} }},
		{name: "no library", wantErr: []string{"way 1:", "is not a shared library"},
			ways: func(n *atomic.Int32) []way { return []way{gives("1", []byte("<html>"), n)} }},
		{name: "not a plugin", wantErr: []string{"does not export GetPjrtApi"},
			ways: func(n *atomic.Int32) []way { return []way{gives("1", compile(t, "int other;"), n)} }},
		{name: "only a reference to the entry", wantErr: []string{"does not export GetPjrtApi"},
			ways: func(n *atomic.Int32) []way {
				return []way{gives("1", compile(t, "void *GetPjrtApi(void); void *f(void) { return GetPjrtApi(); }"), n)}
			}},
		{name: "another processor", wantErr: []string{"is for the processor EM_RISCV, this machine has EM_"},
			ways: func(n *atomic.Int32) []way { return []way{gives("1", foreign, n)} }},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			var calls atomic.Int32
			replace(t, CPU, tc.ways(&calls)...)
			opts := options(t)
			var wg sync.WaitGroup
			for range 4 { // Concurrently: one installs.
				wg.Go(func() {
					dir, err := Ensure(context.Background(), opts)
					if tc.wantErr != nil {
						expect(t, err, tc.wantErr...)
						return
					}
					if err != nil || filepath.Base(dir) != tc.want {
						t.Errorf("got %s, %v, want %s", dir, err, tc.want)
						return
					}
					if got, err := os.ReadFile(filepath.Join(dir, FileName(CPU))); !bytes.Equal(got, good) || err != nil {
						t.Errorf("other content: %v", err)
					}
					if info, err := os.Stat(filepath.Join(dir, FileName(CPU))); err != nil || info.Mode() != 0o444 {
						t.Errorf("it can be written into: %v, %v", info.Mode(), err)
					}
				})
			}
			wg.Wait()
			if n := calls.Load(); tc.wantErr == nil && n != 1 {
				t.Errorf("installed %d times, want once", n)
			}
			left, _ := filepath.Glob(filepath.Join(opts.Getenv("HOME"), ".cache/gonbatch/plugins/*/unchecked.so"))
			if len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func TestEnsureSaysWhichVariableIsWrong(t *testing.T) {
	replace(t, CPU, fails("never tried"))
	opts := options(t)
	home := opts.Getenv
	opts.Getenv = func(key string) string {
		if key == rundir.EnvPluginDir {
			return "/no/such/folder"
		}
		return home(key)
	}
	_, err := Ensure(context.Background(), opts)
	expect(t, err, "/no/such/folder (GONBATCH_PLUGIN_DIR)", "fix: set GONBATCH_PLUGIN_DIR to a folder that has the file")
	if strings.Contains(err.Error(), "never tried") {
		t.Errorf("it installed in spite of the variable: %v", err)
	}
}

func TestEnsureLinksAVersionedFile(t *testing.T) {
	opts := options(t)
	file := filepath.Join(opts.Getenv("HOME"), ".local/lib/go-xla/pjrt_c_api_cpu_v0.99.0_plugin.so")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("library"), 0o644); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		dir, err := Ensure(context.Background(), opts)
		if err != nil {
			t.Fatal(err)
		}
		got, err := filepath.EvalSymlinks(filepath.Join(dir, FileName(CPU)))
		if err != nil || got != file {
			t.Errorf("links to %s, %v, want %s", got, err, file)
		}
	}
}

func TestEnsureCancelled(t *testing.T) {
	replace(t, CPU, way{version: "1", what: "slow", get: func(ctx context.Context, _ string, _ Options) error {
		<-ctx.Done()
		return ctx.Err()
	}}, fails("2"))
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := Ensure(ctx, options(t)); !errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "way 2") {
		t.Errorf("error %v, want only a deadline", err)
	}
}

func TestEnsureWithoutWritableFolder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	opts := options(t)
	opts.Dir = filepath.Join(file, "plugins")
	_, err := Ensure(context.Background(), opts)
	expect(t, err, opts.Dir, "not a directory")
}

// tarball returns a release's archive with the library.
func tarball(t *testing.T, library []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	head := &tar.Header{Name: "pjrt_c_api_cpu_v0.114.0_plugin.so", Size: int64(len(library)), Mode: 0o755, Typeflag: tar.TypeReg}
	err := w.WriteHeader(head)
	if err == nil {
		_, err = w.Write(library)
	}
	if err := errors.Join(err, w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestFromRelease(t *testing.T) {
	library := []byte("library")
	archive := tarball(t, library)
	sum := sha256.Sum256(archive)
	index := func(digest string) string {
		return fmt.Sprintf(`{"assets":[{"name":"other.tar.gz","digest":"sha256:00"},{"name":%q,"digest":%q,"size":%d}]}`, asset, digest, len(archive))
	}
	digest := "sha256:" + hex.EncodeToString(sum[:])
	tests := []struct {
		name, index string
		archive     []byte
		wantSaid    string
		wantErr     []string
	}{
		{name: "checked", index: index(digest), archive: archive},
		{name: "wrong checksum", index: index("sha256:" + strings.Repeat("0", 64)), archive: archive, wantErr: []string{"wrong checksum"}},
		{name: "no digest", index: index(""), archive: archive, wantSaid: "publishes no SHA-256 of " + asset},
		{name: "index is not JSON", index: "<html>", archive: archive, wantSaid: "invalid character"},
		{name: "no index", archive: archive, wantSaid: "404 Not Found"},
		{name: "no archive", index: index(digest), wantErr: []string{"404 Not Found", asset}},
		{name: "no archive at all", archive: []byte("<html>"), wantErr: []string{"is not gzip"}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				content := map[string][]byte{"/index": []byte(tc.index), "/page/" + asset: tc.archive}[r.URL.Path]
				if len(content) == 0 {
					http.NotFound(w, r)
					return
				}
				_, _ = w.Write(content)
			}))
			defer s.Close()
			var said bytes.Buffer
			dir := t.TempDir()
			path := filepath.Join(dir, "a.so")
			err := fromRelease(context.Background(), s.URL+"/page", s.URL+"/index", path, Options{Progress: &said})
			if tc.wantErr != nil {
				expect(t, err, tc.wantErr...)
				return
			}
			if got, _ := os.ReadFile(path); err != nil || !bytes.Equal(got, library) {
				t.Errorf("%q, %v", got, err)
			}
			if !strings.Contains(said.String(), tc.wantSaid) || (tc.wantSaid == "") == strings.Contains(said.String(), "continuing without") {
				t.Errorf("progress lacks %q:\n%s", tc.wantSaid, said.String())
			}
			if _, err := os.Stat(filepath.Join(dir, asset)); err == nil {
				t.Error("the archive is left")
			}
		})
	}
}

func expect(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("no error, want one with %q", parts)
		return
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("error lacks %q:\n%v", p, err)
		}
	}
}
