package tests

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"gonbatch/internal/bounded"
	"gonbatch/kernel"
	"gonbatch/tests/jupyter"
)

// conformance is the expected result of each test of jupyter_kernel_test. Fix a failing test before
// you list it as "ok"; never change "ok" to anything else. A test of the suite that is not listed
// is an error.
var conformance = map[string]string{
	"test_clear_output":   "ok",
	"test_completion":     "ok",
	"test_display_data":   "ok",
	"test_error":          "ok",
	"test_execute_result": "ok",
	"test_execute_stderr": "ok",
	"test_execute_stdout": "ok",
	"test_history":        "ok",
	"test_inspect":        "ok",
	"test_is_complete":    "ok",
	"test_kernel_info":    "ok",
	"test_pager":          "ok",
}

// TestKernelConformance runs jupyter_kernel_test, Jupyter's own suite for kernels.
func TestKernelConformance(t *testing.T) {
	python := jupyter.Python(t)
	root, err := jupyter.Root()
	if err != nil {
		t.Fatal(err)
	}
	submit, err := submitBinary()
	if err != nil {
		t.Fatal(err)
	}
	dataDir := t.TempDir()
	if _, err := kernel.Install(kernel.InstallOptions{DataDir: dataDir, Program: submit}); err != nil {
		t.Fatal(err)
	}
	cmd := command(root, python, filepath.Join(root, "tests", "jupyter", "kernel_tests.py"), kernel.Name)
	cmd.Env = append(os.Environ(), "JUPYTER_DATA_DIR="+dataDir, jupyter.ClientPath(root), "XDG_STATE_HOME="+t.TempDir(), "GONBATCH_SOURCE="+root)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := bounded.Output(cmd)
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	var results map[string]string
	if err := json.Unmarshal(out, &results); err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, stderr.String())
	}
	for name, want := range conformance {
		if got := results[name]; got != want {
			t.Errorf("%s: %q, want %q\n%s", name, got, want, stderr.String())
		}
	}
	for name, got := range results {
		if _, ok := conformance[name]; !ok {
			t.Errorf("%s: %q: it is missing from the map conformance", name, got)
		}
	}
}
