package testplugin

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"gonbatch/internal/plugin"
)

// Build compiles the plugin, and returns the folder that it is in.
func Build(t testing.TB) string {
	t.Helper()
	cpu, err := plugin.Ensure(context.Background(), plugin.Options{Progress: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	_, file, _, _ := runtime.Caller(0)
	here := filepath.Dir(file)
	list := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/gomlx/go-xla")
	list.Dir = here
	out, err := list.Output()
	if err != nil {
		t.Fatalf("find go-xla: %v", err)
	}
	cc := os.Getenv("CC")
	if cc == "" {
		cc = "cc"
	}
	dir := t.TempDir()
	args := []string{"-shared", "-fPIC", "-O1", "-g", "-Wall", "-Werror", "-fvisibility=hidden",
		"-I", filepath.Join(strings.TrimSpace(string(out)), "pjrt"), "-I", filepath.Dir(here),
		fmt.Sprintf("-DCPU_PLUGIN=%q", filepath.Join(cpu, plugin.FileName(plugin.CPU))),
		"-o", filepath.Join(dir, plugin.FileName(plugin.CUDA))}
	sources, err := filepath.Glob(filepath.Join(here, "source", "*.c"))
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(cc, append(append(args, sources...), "-ldl", "-lpthread")...).CombinedOutput(); err != nil {
		t.Fatalf("compile the test plugin: %v\n%s", err, out)
	}
	return dir
}
