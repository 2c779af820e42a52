package jupyter

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"gonbatch/internal/bounded"
	"gonbatch/internal/machine"
)

//go:embed execute.py
var execute string

// Run says which notebook runs, and how.
type Run struct {
	// Notebook is the file to execute. It is not changed.
	Notebook string
	// Kernel is the kernel to use, whatever the notebook's metadata says.
	Kernel string
	// DataDir is the Jupyter data folder in which that kernel is installed.
	DataDir string
	// Folder is the kernel's working folder: the notebook's own, if unset.
	Folder string
	// Env are additional variables, as NAME=value.
	Env []string
	// CellLimit is the time that one cell may take: ten minutes, if unset.
	CellLimit time.Duration
}

// Result is what a notebook put out.
type Result struct {
	// Outputs holds the text of each code cell, in order: its streams, plain-text results and
	// errors. Stderr holds what of it the cell wrote to standard error.
	Outputs []string `json:"outputs"`
	Stderr  []string `json:"stderr"`
	// Pictures holds the PNGs that each code cell shows.
	Pictures [][][]byte `json:"pictures"`
	// Error is the error of the cell that failed, or empty. No cell after it has run.
	Error string `json:"error"`
	// Log is what the kernel and the client wrote to standard error.
	Log string `json:"-"`
}

// Execute executes a notebook. A failing cell is in the result; a client or kernel that fails
// otherwise fails the test.
func Execute(t testing.TB, run Run) Result {
	t.Helper()
	python := Python(t)
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	notebook, err := filepath.Abs(run.Notebook)
	if err != nil {
		t.Fatal(err)
	}
	if run.Folder == "" {
		run.Folder = filepath.Dir(notebook)
	}
	if run.CellLimit == 0 {
		run.CellLimit = 10 * time.Minute
	}
	cmd := exec.Command(python, "-c", execute, notebook, run.Kernel, run.Folder, strconv.Itoa(int(run.CellLimit.Seconds())))
	cmd.Env = append(os.Environ(), append(run.Env, "JUPYTER_DATA_DIR="+run.DataDir, ClientPath(root))...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := bounded.Run(cmd); err != nil {
		t.Fatalf("execute %s: %v\n%s", run.Notebook, err, stderr.String())
	}
	var result Result
	if err := json.Unmarshal(stdout.Bytes(), &result); err != nil {
		t.Fatalf("execute %s: %v\n%s\n%s", run.Notebook, err, stdout.String(), stderr.String())
	}
	result.Log = stderr.String()
	return result
}

// ClientPath is the variable with which Python finds the modules of tests/jupyter/client in the
// source tree at root: ports, for each client that starts a kernel.
func ClientPath(root string) string {
	return "PYTHONPATH=" + filepath.Join(root, "tests", "jupyter", "client")
}

// Python returns the interpreter of the tests' Python environment.
func Python(t testing.TB) string {
	t.Helper()
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	python := filepath.Join(root, ".cache", "venv", "bin", "python")
	if _, err := os.Stat(python); errors.Is(err, fs.ErrNotExist) {
		machine.Lacks(t, "no Python environment with a Jupyter client in .cache/venv: run `make setup`")
	}
	return python
}

// Root is the root of the source tree: the nearest folder above the working folder that has a
// go.mod.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("no go.mod in the working folder or above it: run the tests in the source tree")
		}
		dir = parent
	}
}
