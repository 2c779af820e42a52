package kernel

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gonbatch/internal/machine"
	"gonbatch/internal/rundir"
)

// TestDoctor examines machines that lack things, and this one, on which the tests' set-up has
// installed everything.
func TestDoctor(t *testing.T) {
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	bin, empty, data, broken := t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()
	for _, name := range []string{"gcc", "gonb", "goimports", "gopls"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for dir, program := range map[string]string{data: filepath.Join(bin, "gcc"), broken: "/nowhere/submit"} {
		opts := InstallOptions{DataDir: dir, Program: program}
		if dir == broken {
			opts.Env = map[string]string{rundir.EnvGo: "/nowhere/go"}
		}
		if _, err := Install(opts); err != nil {
			t.Fatal(err)
		}
	}
	installed := filepath.Join(root, ".cache", "bin")
	if _, err := os.Stat(filepath.Join(installed, "gopls")); err != nil {
		machine.Lacks(t, "no gopls in .cache/bin: run `make setup`")
	}
	tests := []struct {
		name, path, data, source, plugins string
		want                              map[string]string // what is wrong
	}{
		{name: "all is there", path: installed + ":" + os.Getenv("PATH"), data: data, source: root, plugins: "/plugins"},
		{
			name: "nothing is there", path: empty, data: empty, source: empty,
			want: map[string]string{
				"Go": "https://go.dev/dl", "C compiler": "apt-get install gcc", "gonbatch's source": "set GONBATCH_SOURCE", "programs": "set GONBATCH_SOURCE",
				"Go modules": "go not found", "XLA plugin": "first cell", "kernelspec": "submit kernel install",
			},
		},
		{
			name: "the programs of others, the kernel's own and Go are gone", path: bin, data: broken, source: root, plugins: "/plugins",
			want: map[string]string{
				"kernelspec": "it starts /nowhere/submit, which is gone", "Go": "GONBATCH_GO=/nowhere/go: there is no go command: run submit kernel install",
				"gonb": "the kernel was tested with v0.11.5", "goimports": "has version \"\"", "gopls": "run submit kernel install", "Go modules": "GONBATCH_GO",
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			env := []string{"PATH=" + tt.path, "JUPYTER_DATA_DIR=" + tt.data, "HOME=" + os.Getenv("HOME")}
			found := Doctor(Options{SourceDir: tt.source, PluginDir: tt.plugins, Environ: env})
			if want := len(tt.want) == 0; found.OK != want {
				t.Errorf("the kernel can run: %t, want %t", found.OK, want)
			}
			for _, f := range found.Findings {
				want := tt.want[f.Name]
				if (f.Problem == "") != (want == "") || !strings.Contains(f.Problem, want) {
					t.Errorf("%s: %q, %s; want %q", f.Name, f.Found, f.Problem, want)
				}
				delete(tt.want, f.Name)
			}
			if len(tt.want) > 0 || len(found.Findings) < 7 {
				t.Errorf("%d findings, without %v", len(found.Findings), tt.want)
			}
		})
	}
}

func TestUninstall(t *testing.T) {
	opts := InstallOptions{Prefix: t.TempDir(), Program: "/usr/local/bin/submit"}
	if _, err := Uninstall(opts); err == nil || !strings.Contains(err.Error(), "not installed there") {
		t.Errorf("error %v", err)
	}
	dir, err := Install(opts)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Uninstall(opts)
	if _, left := os.Stat(dir); err != nil || got != dir || !os.IsNotExist(left) {
		t.Errorf("removed %s, %v; left: %v", got, err, left)
	}
}
