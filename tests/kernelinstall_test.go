package tests

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gonbatch/internal/bounded"
	"gonbatch/internal/plugin"
	"gonbatch/internal/tier"
	"gonbatch/kernel"
	"gonbatch/tests/jupyter"
)

// freshCells are the cells of somebody's first notebook: no set-up cell, no go get.
var freshCells = []string{
	"import (\n\t\"github.com/gomlx/gomlx/core/graph\"\n\n\t\"gonbatch/distributed\"\n)",
	"%%\nworld, err := distributed.Init()\nif err != nil {\n\tpanic(err)\n}\ndefer world.Close()\n" +
		"y := graph.MustExecOnce(world.Backend(), func(x *graph.Node) *graph.Node { return graph.ReduceAllSum(graph.Square(x)) }, []float32{1, 2, 3})\n" +
		"fmt.Println(y.Value())",
}

// TestKernelInstall installs the kernel for a user who has only Go, runs a notebook without a
// network, and uninstalls the kernel.
func TestKernelInstall(t *testing.T) {
	t.Parallel()
	tier.Long(t)
	jupyter.Python(t)
	submit, err := submitBinary()
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	env := freshEnvironment(t, home)
	run := func(args ...string) (string, error) {
		cmd := exec.Command(submit, args...)
		cmd.Dir, cmd.Env = home, env
		out, err := bounded.CombinedOutput(cmd)
		return string(out), err
	}
	if out, err := run("kernel", "install", "--wait"); err != nil {
		t.Fatalf("install: %v\n%s", err, out)
	}
	data := filepath.Join(home, ".local", "share", "jupyter")
	for _, name := range []string{"kernel.json", "logo-svg.svg", "logo-64x64.png", "bin/gonb", "bin/goimports", "bin/gopls"} {
		if _, err := os.Stat(filepath.Join(data, "kernels", kernel.Name, name)); err != nil {
			t.Error(err)
		}
	}
	env = append(env, "GOPROXY=off")
	if out, err := run("kernel", "doctor"); err != nil || strings.Contains(out, "missing") {
		t.Errorf("doctor: %v\n%s", err, out)
	}
	// Jupyter does not know where Go is, as when it was started from a desktop.
	withoutGo := append(env, "PATH=/usr/bin:/bin", "HOME="+home, "GOFLAGS=")
	result := jupyter.Execute(t, jupyter.Run{Notebook: freshNotebook(t), Kernel: kernel.Name, DataDir: data, Folder: home, Env: withoutGo})
	if result.Error != "" || len(result.Outputs) != 2 || result.Outputs[1] != "14\n" {
		t.Errorf("outputs %q, %s\n%s", result.Outputs, result.Error, result.Log)
	}
	if out, err := run("kernel", "uninstall"); err != nil {
		t.Errorf("uninstall: %v\n%s", err, out)
	}
	if left, err := filepath.Glob(filepath.Join(data, "kernels", "*")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// freshEnvironment is the environment of a new user, except for what would have to be downloaded:
// Go's caches and XLA's plugin.
func freshEnvironment(t *testing.T, home string) []string {
	t.Helper()
	env := []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + t.TempDir()}
	for _, name := range []string{"GOMODCACHE", "GOCACHE", "GOPROXY"} {
		out, err := bounded.Output(exec.Command("go", "env", name))
		if err != nil {
			t.Fatal(err)
		}
		env = append(env, name+"="+strings.TrimSpace(string(out)))
	}
	dir, err := plugin.Ensure(t.Context(), plugin.Options{Platform: plugin.CPU, Progress: os.Stderr, Getenv: os.Getenv})
	if err != nil {
		t.Fatal(err)
	}
	return append(env, "GONBATCH_PLUGIN_DIR="+dir)
}

// freshNotebook writes a notebook of freshCells.
func freshNotebook(t *testing.T) string {
	t.Helper()
	cells := []map[string]any{}
	for _, source := range freshCells {
		cells = append(cells, map[string]any{"cell_type": "code", "source": source, "metadata": map[string]any{}, "outputs": []any{}, "execution_count": nil})
	}
	text, err := json.Marshal(map[string]any{"cells": cells, "metadata": map[string]any{}, "nbformat": 4, "nbformat_minor": 4})
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "fresh.ipynb")
	if err := os.WriteFile(name, text, 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}
