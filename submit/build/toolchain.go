package build

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/version"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/mod/modfile"
)

// toolchain is the go command with its environment.
type toolchain struct {
	command, dir string
	environ      []string
	// env is the output of go env.
	env map[string]string
}

// envNames are the variables of go env that affect the compiled programs.
var envNames = []string{
	"GOVERSION", "GOOS", "GOARCH", "GOAMD64", "GOARM64", "GOEXPERIMENT", "GOFLAGS", "CC", "CXX",
	"CGO_CFLAGS", "CGO_CPPFLAGS", "CGO_CXXFLAGS", "CGO_LDFLAGS",
}

// findToolchain asks the go command for its settings, and checks its version. GOFLAGS are our flags
// and the user's, without those that would break the build.
func findToolchain(ctx context.Context, dir string, opt Options) (*toolchain, error) {
	t := &toolchain{command: opt.Go, dir: dir, environ: slices.Clone(opt.Env)}
	if t.command == "" {
		t.command = "go"
	}
	if t.environ == nil {
		t.environ = os.Environ()
	}
	t.environ = append(t.environ, "GOWORK=off", "CGO_ENABLED=1")
	out, err := t.ask(ctx)
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("the Go compiler %q is not on PATH; install Go (https://go.dev/dl), or load the cluster's module for it", t.command)
	case err != nil:
		failed := fmt.Errorf("%s env: %w\n%s", t.command, err, strings.TrimSpace(string(out)))
		return nil, cmp.Or(t.checkAge(t.ownVersion(ctx)), failed)
	}
	if err := json.Unmarshal(out, &t.env); err != nil {
		return nil, fmt.Errorf("%s env: %w", t.command, err)
	}
	flags := append([]string{"-mod=readonly", "-buildvcs=false"}, keptFlags(t.env["GOFLAGS"])...)
	t.env["GOFLAGS"] = strings.Join(flags, " ")
	t.environ = append(t.environ, "GOFLAGS="+t.env["GOFLAGS"])
	return t, t.checkAge(t.env["GOVERSION"])
}

// answers are those of go env, by everything that they may depend on: the runs of a sweep ask the
// same.
var answers sync.Map

// ask runs go env.
func (t *toolchain) ask(ctx context.Context) ([]byte, error) {
	mod, _ := os.ReadFile(filepath.Join(t.dir, "go.mod")) // It may choose the toolchain.
	key := fmt.Sprintf("%q %q %q", t.command, t.environ, mod)
	if answer, ok := answers.Load(key); ok {
		return answer.([]byte), nil
	}
	out, err := t.run(ctx, append([]string{"env", "-json"}, envNames...)...)
	if err == nil {
		answers.Store(key, out)
	}
	return out, err
}

// ownVersion returns the go command's own version, asked for in a folder where no go.mod can be too
// new for it; "" if it fails.
func (t *toolchain) ownVersion(ctx context.Context) string {
	own := *t
	own.dir, own.environ = "/", append(slices.Clone(t.environ), "GOTOOLCHAIN=local", "GO111MODULE=on")
	out, err := own.run(ctx, "env", "GOVERSION")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// checkAge refuses a Go that is older than the module requires. It accepts a version that cannot be
// compared, such as a development tree's.
func (t *toolchain) checkAge(have string) error {
	text, err := os.ReadFile(filepath.Join(t.dir, "go.mod"))
	if err != nil {
		return nil // The compiler says more.
	}
	module, err := modfile.ParseLax("go.mod", text, nil)
	if err != nil || module.Go == nil || !version.IsValid(have) || version.Compare(have, "go"+module.Go.Version) >= 0 {
		return nil
	}
	return fmt.Errorf("the Go compiler %q is %s, and the programs need Go %s; install it (https://go.dev/dl), or load the cluster's module for it, and put it first on PATH",
		t.command, have, module.Go.Version)
}

// droppedFlags are flags in GOFLAGS that the build sets itself, or that change its result or
// output.
var droppedFlags = map[string]bool{
	"-mod": true, "-modfile": true, "-overlay": true, "-buildvcs": true, "-trimpath": true, "-ldflags": true, "-o": true,
	"-C": true, "-n": true, "-x": true, "-v": true, "-json": true, "-work": true, "-a": true, "-i": true, "-buildmode": true,
}

// keptFlags returns the flags of the user's GOFLAGS that a build may use.
func keptFlags(goflags string) []string {
	var kept []string
	for _, flag := range strings.Fields(goflags) {
		name, _, _ := strings.Cut("-"+strings.TrimLeft(flag, "-"), "=")
		if !droppedFlags[name] {
			kept = append(kept, flag)
		}
	}
	return kept
}

// run runs the go command and returns its standard output, or its messages if it fails.
func (t *toolchain) run(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, t.command, args...)
	cmd.Dir, cmd.Env = t.dir, t.environ
	cmd.WaitDelay = time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stderr.Bytes(), err
	}
	return stdout.Bytes(), nil
}
