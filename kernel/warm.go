package kernel

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"gonbatch/kernel/tool"
)

// WarmPackages are the packages that notebooks import from gonbatch and GoMLX, and packages that
// show values.
var WarmPackages = []string{
	"gonbatch/kernel/display", "gonbatch/distributed", "gonbatch/kernel/keep/gomlx", "gonbatch/models", "gonbatch/trainer",
	"github.com/gomlx/go-xla/compute/xla", "github.com/gomlx/gomlx/core/graph", "github.com/gomlx/gomlx/ml/train",
	"gonum.org/v1/plot/plotter", "github.com/janpfeifer/gonb/gonbui",
}

// Warm fetches the modules that notebooks import and fills Go's build cache with them, so that the
// first cell that imports them takes no longer than others, and no cell needs a network. It takes
// minutes the first time, and blocks; it runs at low priority.
func Warm(ctx context.Context, environ []string) error {
	source, err := sourceDir(ctx, environ)
	if err != nil {
		return err
	}
	return inModule(ctx, source, environ, "build", "-ldflags=-s", "-o", "program")
}

// checkModules returns an error if a notebook would need the network for its imports.
func checkModules(env environment, sourceDir string) error {
	env.set("GOPROXY", "off")
	return inModule(context.Background(), sourceDir, env, "list", "-deps")
}

// inModule runs the go command in a module like a session's, with a program that imports all of
// WarmPackages.
func inModule(ctx context.Context, sourceDir string, env environment, args ...string) error {
	goCommand, err := findGo(env)
	if err != nil {
		return err
	}
	mod, err := moduleText(sourceDir)
	if err != nil {
		return err
	}
	sum, err := os.ReadFile(filepath.Join(sourceDir, "go.sum"))
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(env.get("TMPDIR"), "gonbatch-warm-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	text := "package main\n\nimport (\n\t_ \"" + strings.Join(WarmPackages, "\"\n\t_ \"") + "\"\n)\n\nfunc main() {}\n"
	err = errors.Join(
		os.WriteFile(filepath.Join(dir, "go.mod"), mod, 0o644), os.WriteFile(filepath.Join(dir, "go.sum"), sum, 0o644),
		os.WriteFile(filepath.Join(dir, "main.go"), []byte(text), 0o644))
	if err != nil {
		return err
	}
	words := append([]string{goCommand}, args...)
	if nice, err := exec.LookPath("nice"); err == nil {
		words = append([]string{nice}, words...)
	}
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Dir, cmd.Env = dir, append(tool.Outside(env, "-mod=mod -buildvcs=false"), "PWD="+dir)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("go %s: %w\n%s", args[0], err, bytes.TrimSpace(stderr.Bytes()))
	}
	return nil
}
