package arch

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gonbatch/internal/bounded"
)

const module = "gonbatch"

// layer is a row of the table in docs/architecture.md. A name stands for the package and everything
// below it.
type layer struct {
	name     string
	packages []string
	// mayImport are the packages of this module that the layer may import, in addition to its own.
	mayImport []string
	// all lets the layer import everything.
	all bool
}

var layers = []layer{
	{name: "wiring", packages: []string{"cmd", "tests", "bench"}, all: true},
	{name: "kernel", packages: []string{"kernel"}, mayImport: []string{"internal", "submit/report"}},
	{name: "submission", packages: []string{"submit", "slurmtmpl"}, mayImport: []string{"internal", "checkpoint/folder", "data", "logger/drawing", "submit/result"}},
	{name: "loop", packages: []string{"trainer"}, mayImport: []string{"distributed", "data", "logger", "checkpoint", "internal/layerhooks", "internal/nearest", "internal/plural", "internal/rundir", "internal/unread", "internal/yamldoc"}},
	{name: "training", packages: []string{"distributed"}, mayImport: []string{"data", "logger", "internal/bounded", "internal/plugin", "internal/plural", "internal/quota", "internal/unread", "internal/compilecache", "internal/forecast", "internal/solo", "checkpoint", "internal/rundir", "internal/cluster", "internal/layerhooks", "internal/machine"}},
	{name: "library", packages: []string{"models", "data", "internal/plugin", "internal/compilecache", "logger", "kernel/display", "kernel/keep", "checkpoint", "submit/result"}, mayImport: []string{"internal/fetch", "internal/forecast", "internal/hugepages", "internal/layerhooks", "internal/plural", "internal/rundir", "internal/cluster", "internal/sharedlib", "internal/unread", "internal/userdir"}},
	{name: "own code", packages: []string{"data/gocode"}, mayImport: []string{root}},
	{name: "embedded source", packages: []string{"internal/source"}, mayImport: []string{"internal/rundir", "internal/userdir", root}},
	{name: "commands of tests", packages: []string{"internal/bounded"}, mayImport: []string{"internal/proc"}},
	{name: "downloads", packages: []string{"internal/fetch"}, mayImport: []string{"internal/solo"}},
	{name: "words", packages: []string{"internal/gocell", "internal/yamldoc"}, mayImport: []string{"internal/nearest"}},
	{name: "leaves", packages: []string{"internal/rundir", "internal/cluster", "internal/forecast", "internal/gomodule", "internal/hugepages", "internal/layerhooks", "internal/machine", "internal/nbformat", "internal/nearest", "internal/plural", "internal/proc", "internal/quota", "internal/sharedlib", "internal/solo", "internal/tier", "internal/unread", "internal/userdir"}},
	{name: "root", packages: []string{root}},
}

// root stands for the module's root package, which embeds the source for packages source and
// gocode.
const root = "."

// sealed layers have packages that must not know one another: each may import only what is below
// itself.
var sealed = []string{"leaves"}

// submission maps each package of the layer "submission" to the packages of the layer that it may
// import. The vocabulary imports no implementation, the schedulers know neither notebooks nor each
// other, and submit/run ties them together.
var submission = map[string][]string{
	"submit":                {},
	"submit/report":         {},
	"submit/estimate":       {"submit", "submit/report", "submit/scratch"},
	"submit/scratch":        {},
	"submit/store":          {},
	"submit/export":         {"submit/export/decl", "submit/export/gomod", "submit/export/input", "submit/export/nbcell", "submit/export/pitfall", "submit/export/program", "submit/export/script"},
	"submit/export/decl":    {"submit/export/input", "submit/export/nbcell"},
	"submit/export/gomod":   {},
	"submit/export/input":   {"submit/export/gomod", "submit/export/nbcell"},
	"submit/export/nbcell":  {},
	"submit/export/pitfall": {"submit/export/gomod", "submit/export/nbcell"},
	"submit/export/program": {"submit/export/decl", "submit/export/gomod", "submit/export/nbcell"},
	"submit/export/script":  {},
	"submit/config":         {"submit/report"},
	"submit/build":          {"submit/export", "submit/export/nbcell", "submit/store"},
	"submit/executed":       {"submit", "submit/scratch"},
	"slurmtmpl":             {"submit"},
	"submit/loader":         {"submit"},
	"submit/notify":         {"submit"},
	"submit/slurm":          {"submit", "submit/executed", "submit/job", "submit/loader", "submit/notify", "submit/scratch", "slurmtmpl"},
	"submit/job":            {"submit"},
	"submit/local":          {"submit", "submit/executed", "submit/job", "submit/notify"},
	"submit/modules":        {"submit/export", "submit/export/gomod", "submit/export/nbcell", "submit/scratch"},
	"submit/stage":          {"submit", "submit/build", "submit/executed", "submit/export", "submit/export/input", "submit/export/nbcell", "submit/loader", "submit/modules", "submit/report", "submit/scratch", "submit/store"},
	"submit/rank":           {"submit", "submit/executed"},
	"submit/run":            {"submit", "submit/estimate", "submit/executed", "submit/export", "submit/export/nbcell", "submit/report", "submit/stage", "submit/store"},
	"submit/schedulertest":  {"submit", "submit/report", "submit/run"},
}

// pkg is what the go command reports about a package.
type pkg struct {
	ImportPath, Dir, Name, Doc string
	Imports                    []string
	GoFiles, CgoFiles          []string
}

func TestImports(t *testing.T) {
	for _, p := range list(t) {
		for _, err := range violations(layers, p) {
			t.Error(err)
		}
	}
}

func TestSubmissionImports(t *testing.T) {
	for _, p := range list(t) {
		name, _ := local(p.ImportPath)
		if l, _ := layerOf(layers, name); l.name != "submission" {
			continue
		}
		allowed, known := submission[name]
		if !known {
			t.Errorf("%s is missing from the map submission: add it there and to docs/architecture.md", p.ImportPath)
		}
		for _, imported := range p.Imports {
			other, ours := local(imported)
			if l, _ := layerOf(layers, other); ours && l.name == "submission" && !slices.Contains(allowed, other) {
				t.Errorf("%s imports %s: within submission it may import only %q (docs/architecture.md)", p.ImportPath, imported, allowed)
			}
		}
	}
}

// TestDeadlocksAreNoticed checks packages that all cells import: they must stay free of C code,
// because Go reports that all goroutines are asleep only in programs without it. Cells that train
// have XLA's C code anyway.
func TestDeadlocksAreNoticed(t *testing.T) {
	for _, folder := range []string{"kernel/display", "kernel/keep", "submit/result"} {
		out, err := bounded.Output(exec.Command("go", "list", "-deps", module+"/"+folder))
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(strings.Fields(string(out)), "runtime/cgo") {
			t.Errorf("%s leads to runtime/cgo, probably by package net: see go mod why -m, or go list -deps", folder)
		}
	}
}

func TestPackageComments(t *testing.T) {
	for _, p := range list(t) {
		if len(p.GoFiles)+len(p.CgoFiles) > 0 && p.Doc == "" {
			t.Errorf("%s has no package comment: say in doc.go what it is, what it is not, and show an example", p.ImportPath)
		}
	}
}

func TestViolations(t *testing.T) {
	tests := []struct {
		name, pkg, imports, want string
	}{
		{name: "wiring sees all", pkg: "cmd/submit", imports: "distributed/mpi"},
		{name: "downwards", pkg: "submit/slurm", imports: "internal/rundir"},
		{name: "within a layer", pkg: "submit", imports: "slurmtmpl"},
		{name: "another module", pkg: "internal/rundir", imports: "!github.com/spf13/viper"},
		{name: "the standard library", pkg: "internal/rundir", imports: "!os"},
		{name: "below itself", pkg: "internal/fetch", imports: "internal/fetch/internal"},
		{name: "submission meets training", pkg: "submit/slurm", imports: "distributed/mpi", want: "submission may not import"},
		{name: "training meets submission", pkg: "distributed", imports: "submit", want: "training may not import"},
		{name: "upwards", pkg: "data/mnist", imports: "distributed", want: "library may not import"},
		{name: "leaf to leaf", pkg: "internal/rundir", imports: "internal/fetch", want: "leaves may not import"},
		{name: "a name that only begins alike", pkg: "submit", imports: "internals", want: "submission may not import"},
		{name: "the source sees itself embedded", pkg: "internal/source", imports: "!gonbatch"},
		{name: "submission does not", pkg: "submit", imports: "!gonbatch", want: "submission may not import"},
		{name: "no layer", pkg: "utils", imports: "!os", want: "has no layer"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			imported := module + "/" + tt.imports
			if other, ok := strings.CutPrefix(tt.imports, "!"); ok {
				imported = other
			}
			got := errors.Join(violations(layers, pkg{ImportPath: module + "/" + tt.pkg, Imports: []string{imported}})...)
			if tt.want == "" && got != nil || tt.want != "" && (got == nil || !strings.Contains(got.Error(), tt.want)) {
				t.Errorf("violations: %v, want %q", got, tt.want)
			}
		})
	}
}

// violations lists the imports of a package that its layer forbids.
func violations(layers []layer, p pkg) []error {
	name, _ := local(p.ImportPath)
	l, ok := layerOf(layers, name)
	if !ok {
		return []error{fmt.Errorf("%s has no layer: add it to docs/architecture.md and to tests/arch", p.ImportPath)}
	}
	mayImport := func(path string) bool {
		if other, ok := layerOf(layers, path); ok && other.name == l.name {
			return !slices.Contains(sealed, l.name) || within(path, l.packages) == within(name, l.packages)
		}
		return within(path, l.mayImport) != ""
	}
	var errs []error
	for _, imported := range p.Imports {
		path, ours := local(imported)
		if ours && !l.all && !mayImport(path) {
			errs = append(errs, fmt.Errorf("%s imports %s: %s may not import it (docs/architecture.md)", p.ImportPath, imported, l.name))
		}
	}
	return errs
}

// local returns a package's path inside this module, and whether it is in this module.
func local(importPath string) (string, bool) {
	if importPath == module {
		return root, true
	}
	return strings.CutPrefix(importPath, module+"/")
}

// layerOf returns the layer of a package. The longest matching path wins, so that kernel/keep may
// be in another layer than kernel.
func layerOf(layers []layer, name string) (layer, bool) {
	var found layer
	var nearest string
	for _, l := range layers {
		if folder := within(name, l.packages); len(folder) > len(nearest) {
			found, nearest = l, folder
		}
	}
	return found, nearest != ""
}

// within returns the longest of the folders that contain the package, or are the package.
func within(name string, folders []string) string {
	var longest string
	for _, folder := range folders {
		if len(folder) > len(longest) && (name == folder || strings.HasPrefix(name, folder+"/")) {
			longest = folder
		}
	}
	return longest
}

// foreign matches what belongs to one machine or site only: root's home folder, and package
// mirrors.
var foreign = regexp.MustCompile(`(^|[^.\w/])/(root|work|farm)/\w|https?://[\w.-]*(mirror|artifactory|nexus|devpi|athens)[\w.-]*`)

func TestForeign(t *testing.T) {
	tests := []struct {
		line string
		want bool
	}{
		{line: "cd " + "/work" + "/main", want: true},
		{line: `"` + "/root" + `/go/bin"`, want: true},
		{line: "--index-url https://" + "pypi-mirror.example.com/simple", want: true},
		{line: "notebooks/work/x"},
		{line: "https://pypi.org/simple"},
		{line: "runs/root/x"},
	}
	for _, tt := range tests {
		t.Run(tt.line, func(t *testing.T) {
			if got := foreign.MatchString(tt.line); got != tt.want {
				t.Errorf("matches: %v, want %v", got, tt.want)
			}
		})
	}
}

func TestNoFileNamesThisMachine(t *testing.T) {
	dir := sourceRoot(t)
	here := regexp.MustCompile(`(^|[^.\w/])` + regexp.QuoteMeta(dir) + `/`)
	isolated := strings.Count(dir, "/") > 1 // A path such as /src could be in any file.
	for _, name := range tracked(t) {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if errors.Is(err, os.ErrNotExist) || bytes.IndexByte(text, 0) >= 0 || filepath.Ext(name) == ".sum" {
			continue
		}
		lines := bufio.NewScanner(bytes.NewReader(text))
		lines.Buffer(nil, 64<<20)
		for n := 1; lines.Scan(); n++ {
			line := lines.Text()
			if foreign.MatchString(line) || isolated && here.MatchString(line) {
				t.Errorf("%s:%d names this machine: %.120s", name, n, line)
			}
		}
	}
}

func list(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Dir,Name,Doc,Imports,GoFiles,CgoFiles", module+"/...")
	cmd.Dir = sourceRoot(t)
	cmd.Stderr = os.Stderr
	out, err := bounded.Output(cmd)
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []pkg
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("go list: %v", err)
		}
		all = append(all, p)
	}
	if len(all) < 5 {
		t.Fatalf("go list found only %d packages", len(all))
	}
	return all
}

func sourceRoot(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
