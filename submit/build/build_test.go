package build

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gonbatch/internal/bounded"
	"gonbatch/internal/nbformat"
	"gonbatch/internal/rundir"
	"gonbatch/submit/export"
)

var update = flag.Bool("update", false, "write the golden files again")

// exported exports a notebook from submit/export's testdata to a new folder.
func exported(t *testing.T, name string) (*export.Module, string) {
	t.Helper()
	nb, err := nbformat.Read(filepath.Join("..", "export", "testdata", name+".ipynb"))
	if err != nil {
		t.Fatal(err)
	}
	return written(t, nb)
}

// written exports a notebook to a new folder.
func written(t *testing.T, nb *nbformat.Notebook) (*export.Module, string) {
	t.Helper()
	m, err := export.FromNotebook(nb, export.Options{SourceDir: checkout(t)})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "module")
	if err := m.Write(dir); err != nil {
		t.Fatal(err)
	}
	return m, dir
}

// checkout returns this repository's folder.
func checkout(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// cells returns a notebook of code cells.
func cells(sources ...string) *nbformat.Notebook {
	nb := &nbformat.Notebook{Path: "n.ipynb", Major: 4}
	for i, source := range sources {
		nb.Cells = append(nb.Cells, &nbformat.Cell{Type: nbformat.Code, Source: source, Number: i + 1})
	}
	return nb
}

// run runs a cell's program with its arguments and environment.
func run(t *testing.T, r *Result, cell rundir.Cell) (output string, err error) {
	t.Helper()
	cmd := exec.Command(r.Programs[cell.Name], cell.Args...)
	cmd.Env = os.Environ()
	for name, value := range cell.Env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	out, err := bounded.CombinedOutput(cmd)
	return string(out), err
}

func TestBuildAndRun(t *testing.T) {
	cache := t.TempDir()
	tests := []struct {
		notebook string
		want     map[string]string
	}{
		{"hello", map[string]string{"hello-world": "hello 0\n"}},
		{"redefine", map[string]string{"before": "first 1\n", "after": "second 2\n"}},
		{"methods", map[string]string{"cell-3": "6 4 b\n"}},
		{"iota", map[string]string{"cell-3": "0 40 2 9\n"}},
		{"tuple", map[string]string{"cell-4": "initialised\n7 now mine 3 4 0 0\n"}},
		{"inits", map[string]string{"run": "a\nb\nmain 10\n"}},
		{"comments", map[string]string{"cell-2": "raw\n  6\n0\n{0}\n1\n{1}\n"}},
		{"imports", map[string]string{"cell-2": "true 0 t\n"}},
		{"tags", map[string]string{"Eval": "cluster\n", "eval-2": "cluster 2\n", "cell-7": "cluster 3\n"}},
	}
	for _, tt := range tests {
		t.Run(tt.notebook, func(t *testing.T) {
			m, dir := exported(t, tt.notebook)
			r, err := Build(context.Background(), dir, m, Options{CacheDir: cache})
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for _, cell := range m.Cells {
				out, err := run(t, r, cell)
				if err != nil {
					t.Errorf("%s: %v\n%s", cell.Name, err, out)
				}
				got[cell.Name] = out
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
		})
	}
}

func TestProgramGetsMagics(t *testing.T) {
	m, dir := written(t, cells("%env GREETING \"hello there\"\nfunc work() { fmt.Println(os.Getenv(\"GREETING\"), os.Args[1:]) }\n%exec work x \\\n \"two words\""))
	r, err := Build(context.Background(), dir, m, Options{CacheDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if out, err := run(t, r, m.Cells[0]); err != nil || out != "hello there [x two words]\n" {
		t.Errorf("got %q, %v", out, err)
	}
}

func TestCache(t *testing.T) {
	ctx := context.Background()
	opt := Options{CacheDir: t.TempDir()}
	build := func(source string) *Result {
		m, dir := written(t, cells(source))
		r, err := Build(ctx, dir, m, opt)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	first := build("%%\nprintln(1)")
	if first.Cached {
		t.Error("the first build was in the cache")
	}
	again := build("%%\nprintln(1)")
	if !again.Cached || again.Hash != first.Hash {
		t.Error("an unchanged notebook was compiled again")
	}
	changed := build("%%\nprintln(2)")
	if changed.Cached || changed.Hash == first.Hash {
		t.Error("a changed notebook was taken from the cache")
	}
	if err := os.Remove(first.Programs["cell-1"]); err != nil {
		t.Fatal(err)
	}
	if repaired := build("%%\nprintln(1)"); repaired.Cached {
		t.Error("a program that is gone was taken from the cache")
	}
	if flags := build("%goflags -tags other\n%%\nprintln(1)"); flags.Cached || flags.Hash == first.Hash {
		t.Error("other flags gave the same programs")
	}
}

func TestBuildAtOnce(t *testing.T) {
	cache := t.TempDir()
	m, dir := exported(t, "hello")
	compiled := make(chan bool, 4)
	var wg sync.WaitGroup
	for range cap(compiled) {
		wg.Go(func() {
			r, err := Build(context.Background(), dir, m, Options{CacheDir: cache})
			if err != nil {
				t.Error(err)
				return
			}
			compiled <- !r.Cached
			if out, err := run(t, r, m.Cells[0]); err != nil || out != "hello 0\n" {
				t.Errorf("got %q, %v", out, err)
			}
		})
	}
	wg.Wait()
	close(compiled)
	n := 0
	for c := range compiled {
		if c {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d builds compiled, want 1", n)
	}
}

func TestCompileErrors(t *testing.T) {
	for _, name := range []string{"broken", "missing-module"} {
		t.Run(name, func(t *testing.T) {
			m, dir := exported(t, name)
			_, err := Build(context.Background(), dir, m, Options{CacheDir: t.TempDir()})
			var mistakes *Error
			if !errors.As(err, &mistakes) {
				t.Fatalf("got %v, want an *Error", err)
			}
			golden := filepath.Join("testdata", name+".txt")
			if *update {
				if err := os.WriteFile(golden, []byte(err.Error()+"\n"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, readErr := os.ReadFile(golden)
			if readErr != nil {
				t.Fatal(readErr)
			}
			if diff := cmp.Diff(string(want), err.Error()+"\n"); diff != "" {
				t.Errorf("error (-golden +got):\n%s\noutput:\n%s", diff, mistakes.Output)
			}
		})
	}
}

func TestPanicNamesCellAndLine(t *testing.T) {
	m, dir := exported(t, "panics")
	r, err := Build(context.Background(), dir, m, Options{CacheDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	out, err := run(t, r, m.Cells[0])
	if err == nil {
		t.Fatal("the program did not panic")
	}
	for _, want := range []string{"before\n", "panics.ipynb[cell 1]:5\n", "panics.ipynb[cell 3]:8 "} {
		if !strings.Contains(out, want) {
			t.Errorf("the panic lacks %q:\n%s", want, out)
		}
	}
}

func TestHostileNotebookName(t *testing.T) {
	nb := cells("%%\nvar xs []int\n_ = xs[flag.NArg()]")
	nb.Path = "/tmp/a \"b\" $(c):7\n'd'.ipynb"
	m, dir := written(t, nb)
	r, err := Build(context.Background(), dir, m, Options{CacheDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	out, _ := run(t, r, m.Cells[0])
	if want := `a "b" $(c):7_'d'.ipynb[cell 1]:3 `; !strings.Contains(out, want) {
		t.Errorf("the panic lacks %q:\n%s", want, out)
	}
}

func TestGoflagsOfTheUser(t *testing.T) {
	m, dir := exported(t, "hello")
	env := append(os.Environ(), "GOFLAGS=-mod=vendor -tags=x -v -json", "GOWORK=/no/such/go.work")
	r, err := Build(context.Background(), dir, m, Options{CacheDir: t.TempDir(), Env: env})
	if err != nil {
		t.Fatal(err)
	}
	if out, err := run(t, r, m.Cells[0]); err != nil || out != "hello 0\n" {
		t.Errorf("got %q, %v", out, err)
	}
}

func TestKeptFlags(t *testing.T) {
	tests := []struct {
		name, flags string
		want        []string
	}{
		{"none", "", nil},
		{"tags stay", "-mod=vendor -tags=a,b --trimpath", []string{"-tags=a,b"}},
		{"noise goes", "-x -v -json -buildvcs=true -race", []string{"-race"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, keptFlags(tt.flags)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestToolErrors(t *testing.T) {
	m, dir := exported(t, "hello")
	noCC := append(os.Environ(), "CC=/no/such/cc", "PATH="+filepath.Dir(goCommand(t)))
	cgo, cgoDir := written(t, cells("// #include <stdlib.h>\nimport \"C\"\n\n%%\nprintln(C.abs(-7))"))
	refused, refusedDir := written(t, cells("%goflags -o /tmp/x\n%%\nprintln(1)"))
	unknown, unknownDir := written(t, cells("%goflags -nosuch", "%%\nprintln(1)"))
	tests := []struct {
		name   string
		module *export.Module
		dir    string
		opt    Options
		want   string
	}{
		{"unknown flag", unknown, unknownDir, Options{}, "-nosuch\nusage: go build [-o output] [build flags] [packages]\nRun 'go help build' for details.\ncell 2 was built with %goflags -nosuch"},
		{"no Go", m, dir, Options{Go: "no-such-go"}, `build hello.ipynb: the Go compiler "no-such-go" is not on PATH; install Go`},
		{"an old Go", m, dir, Options{Go: oldGo(t, `case "$*" in "env GOVERSION") echo go1.19.8;; *) echo "go: errors parsing go.mod: invalid go version" >&2; exit 1;; esac`)}, `is go1.19.8, and the programs need Go 1.`},
		{"an old Go that reads go.mod", m, dir, Options{Go: oldGo(t, `echo '{"GOVERSION": "go1.20"}'`)}, `is go1.20, and the programs need Go 1.`},
		{"no Go at a path", m, dir, Options{Go: "/no/such/go"}, `the Go compiler "/no/such/go" is not on PATH`},
		{"no C compiler", cgo, cgoDir, Options{Env: noCC}, "no C compiler found"},
		{"refused flag", refused, refusedDir, Options{}, "%goflags -o cannot be used for a job"},
		{"cache is a file", m, dir, Options{CacheDir: "/dev/null"}, "build hello.ipynb: mkdir /dev/null"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.opt.CacheDir == "" {
				tt.opt.CacheDir = t.TempDir()
			}
			_, err := Build(context.Background(), tt.dir, tt.module, tt.opt)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q in it", err, tt.want)
			}
		})
	}
	t.Run("cgo with its preamble", func(t *testing.T) {
		r, err := Build(context.Background(), cgoDir, cgo, Options{CacheDir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		if out, err := run(t, r, cgo.Cells[0]); err != nil || out != "7\n" {
			t.Errorf("got %q, %v", out, err)
		}
	})
}

// goCommand returns the go command's path.
func goCommand(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// oldGo writes a script that acts as an old go command, and returns its path.
func oldGo(t *testing.T, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "go")
	if err := os.WriteFile(path, []byte("#!/bin/bash\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCancel(t *testing.T) {
	m, dir := exported(t, "hello")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Build(ctx, dir, m, Options{CacheDir: t.TempDir()}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}

func TestVetIsClean(t *testing.T) {
	m, dir := exported(t, "comments")
	if _, err := Build(context.Background(), dir, m, Options{CacheDir: t.TempDir()}); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "vet", "./...")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=readonly", "GOWORK=off")
	if out, err := bounded.CombinedOutput(cmd); err != nil {
		t.Errorf("go vet: %v\n%s", err, out)
	}
}

// TestDeclaredElsewhere: the error for an undefined name says which other cell declares it.
func TestDeclaredElsewhere(t *testing.T) {
	nb := cells("func twice(n int) int { return 2 * half(n) }", "%%\nprintln(twice(2))", "func half(n int) int { return n / 2 }", "%%\nshow(3)", "func show(n int) {}")
	nb.Cells[4].Tags = []string{"notebook-only"}
	m, dir := written(t, nb)
	_, err := Check(t.Context(), dir, m, Options{CacheDir: t.TempDir()})
	var mistakes *Error
	if !errors.As(err, &mistakes) {
		t.Fatalf("got %v, want an *Error", err)
	}
	var got []string
	for _, p := range mistakes.Problems {
		got = append(got, fmt.Sprintf("cell %d, line %d: %s", p.Number, p.Line, p.Message))
	}
	slices.Sort(got) // The programs compile concurrently.
	want := []string{
		"cell 1, line 1: undefined: half; cell 3 declares it, after the main cell that needs it: move that cell above the main cell",
		"cell 4, line 2: undefined: show; cell 5 declares it, but its tag leaves that cell out of the job",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestRemoved: the error for a name that a cell removes doesn't name the cell that declared it.
func TestRemoved(t *testing.T) {
	tests := []struct {
		name  string
		cells []string
		want  string
	}{
		{"%rm", []string{"var x = 1", "!true\n%rm y x", "%%\nprintln(x)"}, "undefined: x"},
		{"declared again, below the use", []string{"var x = 1", "%rm x", "%%\nprintln(x)", "var x = 2"}, "undefined: x; cell 4 declares it, after the main cell"},
		{"in the cell that declares it", []string{"%reset go.mod", "%rm x", "%%\nprintln(x)"}, "undefined: x"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, dir := written(t, cells(tt.cells...))
			_, err := Check(t.Context(), dir, m, Options{CacheDir: t.TempDir()})
			var mistakes *Error
			if !errors.As(err, &mistakes) || len(mistakes.Problems) != 1 {
				t.Fatalf("got %v, want one problem", err)
			}
			if got := mistakes.Problems[0].Message; !strings.HasSuffix(got, tt.want) && (tt.want == "undefined: x" || !strings.Contains(got, tt.want)) {
				t.Errorf("%s\nwant %s", got, tt.want)
			}
		})
	}
}

// TestKeepProblems: an error in a %keep names its line, and os.Exit keeps its position in a program
// that keeps variables.
func TestKeepProblems(t *testing.T) {
	m, dir := written(t, cells("%keep nowhere, n", "var n int", "%%\nos.Exit(missing)"))
	_, err := Check(t.Context(), dir, m, Options{CacheDir: t.TempDir()})
	var mistakes *Error
	if !errors.As(err, &mistakes) {
		t.Fatalf("got %v, want an *Error", err)
	}
	var got []string
	for _, p := range mistakes.Problems {
		got = append(got, fmt.Sprintf("cell %d, line %d, column %d: %s", p.Number, p.Line, p.Col, p.Message))
	}
	slices.Sort(got) // The compiler may begin with any cell.
	want := []string{
		"cell 1, line 1, column 0: undefined: nowhere: only package-level variables can be kept: declare it outside of main, as var NAME TYPE",
		"cell 3, line 2, column 9: undefined: missing",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
