package kernel

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDoctor(t *testing.T) {
	source := filepath.Join(t.TempDir(), "source")
	bin := filepath.Join(t.TempDir(), "bin")
	for _, dir := range []string{source, bin} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(source, "go.mod"), []byte("module gonbatch\n\ngo 1.26\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"go", "gcc", "gonb", "goimports", "gopls"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\necho go version go9.9\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	data, empty := t.TempDir(), t.TempDir()
	if _, err := Install(InstallOptions{DataDir: data, Program: filepath.Join(bin, "go")}); err != nil {
		t.Fatal(err)
	}
	broken := t.TempDir()
	if _, err := Install(InstallOptions{DataDir: broken, Program: "/nowhere/submit"}); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, path, data, source, plugins string
		want                              map[string]string // what is wrong
	}{
		{name: "all is there", path: bin, data: data, source: source, plugins: "/plugins"},
		{
			name: "nothing is there", path: empty, data: empty, source: empty,
			want: map[string]string{
				"Go": "https://go.dev/dl", "C compiler": "apt-get install gcc", "gonbatch's source": "set GONBATCH_SOURCE", "gonb": "go install tool",
				"goimports": "go install tool", "gopls": "no completion", "XLA plugin": "first cell", "kernelspec": "submit kernel install",
			},
		},
		{name: "the program is gone", path: bin, data: broken, source: source, plugins: "/plugins", want: map[string]string{"kernelspec": "it starts /nowhere/submit, which is gone"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			env := []string{"PATH=" + tt.path, "JUPYTER_DATA_DIR=" + tt.data, "HOME=" + empty}
			for _, f := range Doctor(Options{SourceDir: tt.source, PluginDir: tt.plugins, Environ: env}) {
				want := tt.want[f.Name]
				if (f.Err == nil) != (want == "") || f.Err != nil && !strings.Contains(f.Err.Error(), want) {
					t.Errorf("%s: %q, %v; want %q", f.Name, f.Found, f.Err, want)
				}
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
