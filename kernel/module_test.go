package kernel

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gonbatch/internal/bounded"
)

// TestNoReplaceLine: however the go command rewrites a session's go.mod, no line begins with
// "replace ": GoNB watches all files below the folder in such a line.
func TestNoReplaceLine(t *testing.T) {
	source, dir := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(source, "go.mod"), []byte("module gonbatch\n\ngo 1.26\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	text, err := moduleText(source)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "go.mod")
	if err := os.WriteFile(name, text, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"mod", "edit", "-module=cells"}, {"mod", "edit", "-fmt"}, {"get", "gonbatch"}} {
		cmd := exec.Command("go", args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOPROXY=off", "GOFLAGS=-mod=mod")
		if out, err := bounded.CombinedOutput(cmd); err != nil && args[0] != "get" { // there is no package, but go.mod is written
			t.Fatalf("go %v: %v\n%s", args, err, out)
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "\nreplace gonbatch") || !strings.Contains(string(text), "gonbatch => "+source) {
			t.Errorf("after go %v:\n%s", args, text)
		}
	}
}

func TestModuleText(t *testing.T) {
	tests := []struct{ name, mod, want, err string }{
		{
			name: "requirements, replacements and a folder with a space",
			mod: `module gonbatch

go 1.26.5

require (
	github.com/gomlx/gomlx v0.28.2
	golang.org/x/sys v0.49.0 // indirect
)

replace (
	example.com/near => ./near
	example.com/far v1.0.0 => example.com/fork v1.0.1
)

tool github.com/janpfeifer/gonb
`,
			want: `module session

go 1.26.5

require (
	gonbatch v0.0.0-00010101000000-000000000000
	github.com/gomlx/gomlx v0.28.2
	golang.org/x/sys v0.49.0 // indirect
)

replace (
	gonbatch => "DIR"
	gonbatch v0.0.0-00010101000000-000000000000 => "DIR"
	example.com/near => "DIR/near"
	example.com/far v1.0.0 => example.com/fork v1.0.1
)
`,
		},
		{name: "no go.mod", err: "set GONBATCH_SOURCE to gonbatch's source tree"},
		{name: "no module line", mod: "go 1.26\n", err: "no module line: set GONBATCH_SOURCE"},
		{name: "not a go.mod", mod: "module gonbatch\n!\n", err: "go.mod:2"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "source tree")
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if tt.mod != "" {
				if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte(tt.mod), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			got, err := moduleText(dir)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("error %v, want %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.ReplaceAll(string(got), dir, "DIR"); got != tt.want {
				t.Errorf("go.mod:\n%s\nwant:\n%s", got, tt.want)
			}
		})
	}
}
