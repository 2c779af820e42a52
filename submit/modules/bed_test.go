package modules

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gonbatch/internal/nbformat"
	"gonbatch/submit/export"
	"gonbatch/tests/goproxy"
)

// bed is a test bed with a module proxy and a stand-in for gonbatch's source.
type bed struct {
	goproxy.Proxy
	t *testing.T
	// source is gonbatch's source, home the notebook's folder, and cache the module cache.
	source, home, cache string
	opt                 Options
}

// newBed creates a bed, in which gonbatch requires example.com/pin v1.2.0 and has the package
// trainer.
func newBed(t *testing.T) *bed {
	t.Helper()
	b := &bed{Proxy: goproxy.New(t), t: t, source: t.TempDir(), home: t.TempDir(), cache: t.TempDir()}
	b.Add("example.com/pin", "v1.0.0", "", "pin.go", "package pin\n\nconst V = 100\n")
	b.Add("example.com/pin", "v1.2.0", "", "pin.go", "package pin\n\nconst V = 120\n")
	b.Add("example.com/pin/nested", "v0.1.0", "\nrequire example.com/pin v1.0.0\n", "nested.go", "package nested\n\nconst V = 1\n")
	for _, version := range []string{"v1.0.0", "v1.1.0"} {
		b.Add("example.com/lib", version, "", "lib.go", "package lib\n\nconst V = \""+version+"\"\n", "sub/sub.go", "package sub\n\nconst S = 1\n")
	}
	b.Add("example.com/strings", "v1.0.0", "", "s.go", "package strings\n\nconst Also = 1\n\nfunc Join2() string { return \"\" }\n")
	b.Add("example.com/odd-name", "v0.3.0", "", "x.go", "package peculiar\n\nconst P = 1\n")
	goproxy.WriteFiles(t, b.source, "go.mod", "module gonbatch\n\ngo 1.26\n\nrequire example.com/pin v1.2.0\n",
		"trainer/trainer.go", "package trainer\n\nimport \"example.com/pin\"\n\nconst V = pin.V\n")
	b.useProxy(b.URL())
	t.Setenv("GOMODCACHE", b.cache)
	t.Setenv("GOSUMDB", "off")
	t.Setenv("GOFLAGS", "-modcacherw")
	t.Setenv("GOWORK", "")
	b.opt = Options{ModuleCache: b.cache, Lock: LockFile(filepath.Join(b.home, "n.ipynb"))}
	// gonbatch's own modules are in the cache, as on a machine where it was installed.
	if _, _, err := b.resolve("import \"gonbatch/trainer\"\n%%\nprintln(trainer.V)"); err != nil {
		t.Fatal(err)
	}
	sum, err := os.ReadFile(filepath.Join(b.home, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	goproxy.WriteFiles(t, b.source, "go.sum", string(sum))
	if err := os.Remove(b.opt.Lock); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return b
}

func (b *bed) useProxy(url string) { b.t.Setenv("GOPROXY", url) }

// resolve resolves a notebook of these cells, and returns its go.mod.
func (b *bed) resolve(sources ...string) (*Result, string, error) {
	b.t.Helper()
	nb := &nbformat.Notebook{Path: filepath.Join(b.home, "n.ipynb"), Major: 4}
	for i, source := range sources {
		nb.Cells = append(nb.Cells, &nbformat.Cell{Type: nbformat.Code, Source: source, Number: i + 1})
	}
	again := func(r export.Resolved) (*export.Module, error) {
		return export.FromNotebook(nb, export.Options{SourceDir: b.source, ModuleCache: b.cache, Resolved: r})
	}
	first, err := again(export.Resolved{})
	if err != nil {
		b.t.Fatal(err)
	}
	opt := b.opt
	opt.Env = os.Environ()
	result, err := Resolve(b.t.Context(), first, again, opt)
	if err != nil {
		return nil, "", err
	}
	if result.LockError != nil {
		b.t.Error(result.LockError)
	}
	goproxy.WriteFiles(b.t, b.home, "go.sum", string(result.Module.Files["go.sum"]))
	return result, string(result.Module.Files["go.mod"]), nil
}

// texts returns the values as strings.
func texts[T interface{ String() string }](all []T) string {
	var lines []string
	for _, v := range all {
		lines = append(lines, v.String())
	}
	return strings.Join(lines, "\n")
}
