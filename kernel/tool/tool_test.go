package tool

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPins(t *testing.T) {
	tests := []struct{ name, mod, err string }{
		{name: "gonbatch's", mod: "module gonbatch\n\nrequire (\n\tgithub.com/janpfeifer/gonb v0.11.5\n\tgolang.org/x/tools v0.52.0\n)\n"},
		{name: "another module", mod: "module other\n", err: "does not require github.com/janpfeifer/gonb: set GONBATCH_SOURCE"},
		{name: "not a go.mod", mod: "nonsense\n", err: "go.mod:1: unknown directive: nonsense"},
		{name: "none", err: "set GONBATCH_SOURCE"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			if tt.mod != "" {
				if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte(tt.mod), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			pins, err := Pins(dir)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("error %v, want %q", err, tt.err)
				}
				return
			}
			if err != nil || len(pins) != 3 || pins[0].Version != "v0.11.5" || pins[1].Version != "v0.52.0" || pins[2].Version != goplsVersion {
				t.Errorf("%+v, %v", pins, err)
			}
		})
	}
}

// TestInstall installs a small program from a module in a folder.
func TestInstall(t *testing.T) {
	source := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":       "module gonbatch\n\ngo 1.26\n\nrequire example.com/small v1.2.3\n\nreplace example.com/small => ./small\n",
		"main.go":      "package main\n\nimport _ \"example.com/small/lib\"\n\nfunc main() {}\n",
		"small/go.mod": "module example.com/small\n\ngo 1.26\n", "small/main.go": "package main\n\nfunc main() {}\n", "small/lib/lib.go": "package lib\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(source, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(source, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	small := Pin{Name: "small", Package: "example.com/small", Module: "example.com/small", Version: "v1.2.3"}
	built, copied := t.TempDir(), t.TempDir()
	opts := Options{Dir: built, SourceDir: source, Go: "go", Environ: append(os.Environ(), "GOPROXY=off")}
	tests := []struct {
		name string
		pin  Pin
		dir  string
		find []string
		err  string
	}{
		{name: "built", pin: small, dir: built},
		{name: "there already", pin: small, dir: built},
		{name: "copied from where it is", pin: small, dir: copied, find: []string{t.TempDir(), built}},
		{name: "another version", pin: Pin{Name: "small", Package: small.Package, Module: small.Module, Version: "v2.0.0"}, dir: t.TempDir(), find: []string{built}, err: `built version "v1.2.3"`},
		{name: "not to be had", pin: Pin{Name: "none", Package: "example.com/none", Module: "example.com/none", Version: "v1.0.0"}, dir: t.TempDir(), err: "install none v1.0.0: go install example.com/none in " + source},
		{name: "of no module of gonbatch's", pin: Pin{Name: "none", Package: "example.com/none", Module: "example.com/none", Version: "v1.0.0", Optional: true}, dir: t.TempDir(), err: "go install example.com/none@v1.0.0"},
		{name: "a folder that cannot be", pin: small, dir: "/dev/null/bin", err: "install small: mkdir /dev/null"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			opts := opts
			opts.Dir, opts.Search = tt.dir, tt.find
			if tt.find != nil && tt.err == "" {
				opts.Go = "/nowhere/go"
			}
			err := Install(t.Context(), tt.pin, opts)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("error %v, want %q", err, tt.err)
				}
			} else if err != nil || !tt.pin.Is(filepath.Join(tt.dir, tt.pin.Name)) {
				t.Errorf("%v; version %q", err, tt.pin.VersionOf(filepath.Join(tt.dir, tt.pin.Name)))
			}
			if left, _ := filepath.Glob(filepath.Join(tt.dir, ".new-*")); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}
