package testplugin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gonbatch/internal/machine"
	"gonbatch/internal/plugin"
)

// Build compiles the plugin, unless an earlier test has, and returns its folder.
func Build(t testing.TB) string {
	t.Helper()
	dir, err := build()
	if err != nil {
		t.Fatalf("the test plugin: %v", err)
	}
	return dir
}

func build() (dir string, err error) {
	cpu, err := plugin.Ensure(context.Background(), plugin.Options{Progress: os.Stderr})
	if err != nil {
		return "", err
	}
	engine := filepath.Join(machine.Source(), "distributed", "pjrt")
	here := filepath.Join(engine, "testplugin")
	sources, err := filepath.Glob(filepath.Join(here, "source", "*"))
	if err != nil {
		return "", err
	}
	sources = append(sources, filepath.Join(engine, "frame.c"), filepath.Join(engine, "frame.h"))
	command, err := compiler(here, filepath.Join(cpu, plugin.FileName(plugin.CPU)))
	if err != nil {
		return "", err
	}
	name, err := hash(append(sources, filepath.Join(engine, "abi.h")), command)
	if err != nil {
		return "", err
	}
	cache := filepath.Join(engine, "..", "..", ".cache")
	dir = filepath.Join(cache, "testplugin-"+name)
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	return dir, compileInto(cache, dir, command, sources)
}

// compiler returns the compiler command, without its input and output files.
func compiler(here, cpu string) ([]string, error) {
	list := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/gomlx/go-xla")
	list.Dir = here
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("find go-xla: %w", err)
	}
	cc := os.Getenv("CC")
	if cc == "" {
		cc = "cc"
	}
	return []string{cc, "-shared", "-fPIC", "-O1", "-g", "-Wall", "-Werror", "-fvisibility=hidden",
		"-I", filepath.Join(strings.TrimSpace(string(out)), "pjrt"), "-I", filepath.Dir(here), fmt.Sprintf("-DCPU_PLUGIN=%q", cpu)}, nil
}

// hash returns a name for the output of the command, given these files.
func hash(files, command []string) (string, error) {
	sum := sha256.New()
	fmt.Fprintln(sum, command)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		fmt.Fprintln(sum, filepath.Base(file), len(text))
		sum.Write(text)
	}
	return hex.EncodeToString(sum.Sum(nil))[:16], nil
}

// compileInto creates the folder with the plugin atomically.
func compileInto(cache, dir string, command, sources []string) error {
	if err := os.MkdirAll(cache, 0o777); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(cache, "testplugin-new-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp) //nolint:errcheck // it was renamed, or is useless
	args := append(command[1:], "-o", filepath.Join(tmp, plugin.FileName(plugin.CUDA)))
	for _, source := range sources {
		if filepath.Ext(source) == ".c" {
			args = append(args, source)
		}
	}
	if out, err := exec.Command(command[0], append(args, "-ldl", "-lpthread")...).CombinedOutput(); err != nil {
		return fmt.Errorf("compile: %w\n%s", err, out)
	}
	if err := os.Rename(tmp, dir); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return os.Chmod(dir, 0o755)
}
