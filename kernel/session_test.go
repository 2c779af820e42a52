package kernel

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"gonbatch/internal/bounded"
)

// TestGoScript runs the session's go command with a recorder instead of the real one.
func TestGoScript(t *testing.T) {
	source := t.TempDir()
	if err := os.WriteFile(filepath.Join(source, "go.mod"), []byte("module gonbatch\n\ngo 1.26\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(source, "go.sum"), []byte("sums\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	// A folder whose name a shell would split.
	real := filepath.Join(t.TempDir(), "it's $(here)", "go")
	if err := os.MkdirAll(filepath.Dir(real), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(real, []byte("#!/bin/sh\necho \"go $*; GOFLAGS=$GOFLAGS GOWORK=$GOWORK GO111MODULE=$GO111MODULE $GOOS/$GOARCH\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	s, err := newSession(source, tools{goCommand: real}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	const flags, own = "GOFLAGS=-v -modfile= -overlay= -trimpath=false -ldflags=-s", " GO111MODULE=on " + runtime.GOOS + "/" + runtime.GOARCH
	const here, outside = flags + " -mod=mod GOWORK=off" + own, "GOFLAGS=-v GOWORK=/theirs GO111MODULE=off plan9/arm"
	tests := []struct {
		name                        string
		args                        []string
		outside, workspace, browser bool
		want                        string
		seeded                      bool
	}{
		{name: "a new module is complete", args: []string{"mod", "init", "gonb_1"}, want: "go mod edit -module=gonb_1; " + here, seeded: true},
		{name: "go get before a build does nothing", args: []string{"get"}},
		{name: "nor does it before a test", args: []string{"get", "-t"}},
		{name: "go get of a module is real", args: []string{"get", "example.com/m@v1.2.3"}, want: "go get example.com/m@v1.2.3; " + here},
		{name: "build", args: []string{"build", "-o", "x"}, want: "go build -o x; " + here},
		{name: "a workspace is made", args: []string{"work", "init"}, want: "go work init; GOFLAGS= GOWORK=DIR/go.work" + own},
		{name: "in a workspace", workspace: true, args: []string{"list"}, want: "go list; " + flags + " -mod=readonly GOWORK=DIR/go.work" + own},
		{name: "for a browser", browser: true, args: []string{"list"}, want: strings.Replace("go list; "+here, runtime.GOOS+"/"+runtime.GOARCH, "js/wasm", 1)},
		{name: "a user's own module", outside: true, args: []string{"mod", "init", "mine"}, want: "go mod init mine; " + outside},
		{name: "go get in a user's own module", outside: true, args: []string{"get"}, want: "go get; " + outside},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir, gonbDir := t.TempDir(), ""
			if gonbDir = dir; tt.outside {
				gonbDir = s.tmp()
			}
			cmd := exec.Command(filepath.Join(s.bin(), "go"), tt.args...)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "PWD="+dir, "GONB_TMP_DIR="+gonbDir, "GOFLAGS=-v", "GOWORK=/theirs", "GO111MODULE=off", "GOOS=plan9", "GOARCH=arm")
			if tt.browser {
				cmd.Env = append(cmd.Env, "GOOS=js", "GOARCH=wasm")
			}
			if tt.workspace {
				if err := os.WriteFile(filepath.Join(dir, "go.work"), nil, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			out, err := bounded.CombinedOutput(cmd)
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if got := strings.TrimSpace(strings.ReplaceAll(string(out), dir, "DIR")); got != tt.want {
				t.Errorf("ran %q, want %q", got, tt.want)
			}
			_, err = os.Stat(filepath.Join(dir, "go.sum"))
			if seeded := err == nil; seeded != tt.seeded {
				t.Errorf("go.sum there: %v, want %v", seeded, tt.seeded)
			}
		})
	}
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(s.dir); !os.IsNotExist(err) {
		t.Errorf("%s is left: %v", s.dir, err)
	}
}

func TestSessionEnvironment(t *testing.T) {
	s := &session{dir: "/tmp/s"}
	found := tools{goCommand: "/opt/go/bin/go", gonb: "/opt/gonb/gonb", goimports: "/opt/tools/goimports"}
	tests := []struct {
		name    string
		environ []string
		plugins string
		want    map[string]string
	}{
		{
			name: "defaults", environ: []string{"PATH=/usr/bin"}, plugins: "/plugins",
			want: map[string]string{
				"GONBATCH_DEVICES": "1", "GONBATCH_PLUGIN_DIR": "/plugins", "PJRT_PLUGIN_LIBRARY_PATH": "/plugins",
				"GOMLX_NO_AUTO_INSTALL": "1", "GONBATCH_SOURCE": "/src", "TMPDIR": "/tmp/s/tmp",
			},
		},
		{
			name: "the user's own settings stand", plugins: "/plugins",
			environ: []string{"PATH=/usr/bin", "GONBATCH_DEVICES=all", "GONBATCH_PLUGIN_DIR=/mine"},
			want:    map[string]string{"GONBATCH_DEVICES": "all", "GONBATCH_PLUGIN_DIR": "/mine"},
		},
		{
			name: "no plugin folder", environ: []string{"PATH=/usr/bin"},
			want: map[string]string{"GONBATCH_PLUGIN_DIR": "", "GOMLX_NO_AUTO_INSTALL": ""},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			env := sessionEnvironment(Options{SourceDir: "/src", PluginDir: tt.plugins, Environ: tt.environ}, found, s)
			for name, want := range tt.want {
				if got := env.get(name); got != want {
					t.Errorf("%s=%q, want %q", name, got, want)
				}
			}
			path := env.get("PATH")
			if !strings.HasPrefix(path, "/tmp/s/bin:/opt/gonb:/opt/tools:") || !strings.HasSuffix(path, ":/usr/bin:/opt/go/bin") {
				t.Errorf("PATH=%s", path)
			}
		})
	}
}
