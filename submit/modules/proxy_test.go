package modules

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

// proxy is a folder that serves modules as a GOPROXY.
type proxy struct {
	t   *testing.T
	dir string
}

func newProxy(t *testing.T) proxy { return proxy{t, t.TempDir()} }

// url returns the proxy's GOPROXY.
func (p proxy) url() string { return "file://" + p.dir }

// add publishes a module: files alternates names and texts; add writes go.mod.
func (p proxy) add(path, version, requires string, files ...string) {
	p.t.Helper()
	source := p.t.TempDir()
	writeFiles(p.t, source, append(files, "go.mod", fmt.Sprintf("module %s\n\ngo 1.26\n%s", path, requires))...)
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
	writeFiles(p.t, folder, version+".mod", string(mod), version+".info", infoOf(version))
	if !module.IsPseudoVersion(version) {
		list, _ := os.ReadFile(filepath.Join(folder, "list"))
		writeFiles(p.t, folder, "list", string(list)+version+"\n")
	}
}

// commit makes a name, such as a commit's hash, stand for a version.
func (p proxy) commit(path, name, version string) {
	writeFiles(p.t, filepath.Join(p.dir, filepath.FromSlash(path), "@v"), name+".info", infoOf(version))
}

func infoOf(version string) string {
	return fmt.Sprintf(`{"Version":%q,"Time":"2026-01-02T03:04:05Z"}`, version)
}

// withoutLists returns the URL of a registry that serves the proxy's modules, but no lists of
// versions.
func (p proxy) withoutLists() string {
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

// writeFiles writes files into a folder; files alternates names and texts.
func writeFiles(t *testing.T, dir string, files ...string) {
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
