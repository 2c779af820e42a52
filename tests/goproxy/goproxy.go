// Package goproxy is a module proxy for tests: a folder with modules that the test has written. It
// serves files to the go command as GOPROXY, and needs no network.
//
//	proxy := goproxy.New(t)
//	proxy.Add("example.com/lib", "v1.0.0", "", "lib.go", "package lib\n")
//	t.Setenv("GOPROXY", proxy.URL())
package goproxy

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// Proxy is a folder that serves modules as a GOPROXY.
type Proxy struct {
	t   *testing.T
	dir string
}

// New creates a proxy without modules.
func New(t *testing.T) Proxy { return Proxy{t, t.TempDir()} }

// URL returns the proxy's GOPROXY.
func (p Proxy) URL() string { return "file://" + p.dir }

// Add publishes a module: requires are lines of its go.mod, and files alternates names and
// contents.
func (p Proxy) Add(path, version, requires string, files ...string) {
	p.t.Helper()
	source := p.t.TempDir()
	WriteFiles(p.t, source, append(files, "go.mod", fmt.Sprintf("module %s\n\ngo 1.26\n%s", path, requires))...)
	folder := filepath.Join(p.dir, filepath.FromSlash(path), "@v")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		p.t.Fatal(err)
	}
	file, err := os.Create(filepath.Join(folder, version+".zip"))
	if err != nil {
		p.t.Fatal(err)
	}
	if err := errors.Join(zip.CreateFromDir(file, module.Version{Path: path, Version: version}, source), file.Close()); err != nil {
		p.t.Fatal(err)
	}
	mod, err := os.ReadFile(filepath.Join(source, "go.mod"))
	if err != nil {
		p.t.Fatal(err)
	}
	WriteFiles(p.t, folder, version+".mod", string(mod), version+".info", infoOf(version))
	if !module.IsPseudoVersion(version) {
		list, _ := os.ReadFile(filepath.Join(folder, "list"))
		WriteFiles(p.t, folder, "list", string(list)+version+"\n")
	}
}

// Commit makes a name, such as a commit's hash, stand for a version.
func (p Proxy) Commit(path, name, version string) {
	WriteFiles(p.t, filepath.Join(p.dir, filepath.FromSlash(path), "@v"), name+".info", infoOf(version))
}

func infoOf(version string) string {
	return fmt.Sprintf(`{"Version":%q,"Time":"2026-01-02T03:04:05Z"}`, version)
}

// WithoutLists returns the URL of a registry that serves the proxy's modules, but no lists of
// versions.
func (p Proxy) WithoutLists() string {
	files := http.FileServer(http.Dir(p.dir))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/@v/list") || strings.HasSuffix(r.URL.Path, "/@latest") {
			http.Error(w, "This module version is not available.", http.StatusForbidden)
			return
		}
		files.ServeHTTP(w, r)
	}))
	p.t.Cleanup(server.Close)
	return server.URL
}

// WriteFiles writes files into a folder; files alternates names and contents.
func WriteFiles(t *testing.T, dir string, files ...string) {
	t.Helper()
	for i := 0; i < len(files); i += 2 {
		name := filepath.Join(dir, files[i])
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(files[i+1]), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
