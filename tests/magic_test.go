package tests

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gonbatch/internal/bounded"
	"gonbatch/internal/rundir"
	"gonbatch/kernel"
	"gonbatch/tests/cluster"
	"gonbatch/tests/jupyter"
)

// TestSubmitFromNotebook submits jobs to a real cluster from cells of a notebook in a real Jupyter
// client, and waits for them there.
func TestSubmitFromNotebook(t *testing.T) {
	t.Parallel()
	jupyter.Python(t)
	c := cluster.Start(t)
	u := newUser(t, c.Env()...)
	notebook := u.write(t, "session.ipynb",
		"const greeting = \"hello\"",
		"%%\nfmt.Println(greeting, os.Getenv(\"SLURM_NODEID\"))",
		"%submit --nodes 2 --mpi none --name session",
		"%wait",
		"%logs --rank 1",
		"%jobs",
		"%%submit --mpi none --name cell\nfmt.Println(greeting, \"from one cell\")",
		"%wait",
		"%%submit --mpi none --name fails\nfmt.Println(\"no\", 3)\nos.Exit(3)",
		"%wait",
	)
	result := u.execute(t, notebook)
	wants := [][]string{
		{""},
		{"hello \n"},
		{"submitting this session: 2 cells", "run directory: ", "job ", ": pending"},
		{": completed", "| hello 0"},
		{"hello 1\n"},
		{"STATE", "session-", "completed"},
		{"submitting this cell, with the declarations of 2 other cells", ": "},
		{": completed", "| hello from one cell"},
		{"submitting this cell"},
		{": failed", "MagicFailed", "exit code 3"},
	}
	for i, want := range wants {
		for _, text := range want {
			// The card of the first job may have been replaced while later cells ran.
			if i == 2 && text == ": pending" && strings.Contains(result.Outputs[i], ": completed") {
				continue
			}
			if !strings.Contains(result.Outputs[i], text) {
				t.Errorf("cell %d shows %q, want %q", i+1, result.Outputs[i], text)
			}
		}
	}
	if result.Error == "" {
		t.Error("the notebook did not fail with the job")
	}
	u.checkSession(t)
}

// TestMagicErrors checks that a magic that fails makes its cell fail, and says what is wrong,
// where, and what to do.
func TestMagicErrors(t *testing.T) {
	t.Parallel()
	tests := []struct {
		cell string
		want []string
	}{
		{"%wait", []string{"%wait: no job: nothing was submitted in this session", "%jobs"}},
		{"%wait 404", []string{"%wait: ", `no run "404" in runs`, "submit status"}},
		{"%wait 1 2", []string{"%wait 1 2: give at most one run"}},
		{"%logs", []string{"%logs: no job"}},
		{"%logs 404", []string{`no run "404"`}},
		{"%logs --rank two 404", []string{"give a whole number"}},
		{"%cancel", []string{"%cancel: no job"}},
		{"%cancel 404", []string{`no run "404"`}},
		{"%result", []string{"%result: no job"}},
		{"%result 404 as run", []string{"%result: ", `no run "404"`}},
		{"%result 404 as 4x", []string{"4x can't be the name of a variable"}},
		{"%jobs --nosuch", []string{"--nosuch"}},
		{"%jobs 1 2", []string{"takes at most one RUN"}},
		{"%submit", []string{"no cell of this session has run", "%submit --saved"}},
		{"%submit --saved", []string{"doesn't say which file the notebook is"}},
		{"%submit \"", []string{"%submit \""}},
		{"%%submit --nodes 0\nx()", []string{"nodes"}},
		{"%%submit --nosuch\nprintln(1)", []string{"unknown flag: --nosuch", "submit --help"}},
		{"%%submit\nprintln(1)", []string{"sbatch"}},
		{"%%submit --local\n\n", []string{"%%submit: there is nothing below this line", "%submit for the whole session"}},
		{"%%submit --local\nfunc main() {\n\tundefined()\n}", []string{"cell [", "line 3, column 2: undefined: undefined"}},
		{"%distributed", []string{"want the number of ranks, 1 to 64"}},
		{"%distributed many", []string{"%distributed many: want the number of ranks"}},
		{"%devices gpu", []string{"%devices gpu: it takes no arguments"}},
		{"%devices\n%%\nprintln(1)", []string{"put it into a different cell"}},
		{"%who x", []string{"%who x: it takes no arguments"}},
		{"%nosuch", []string{"unknown magic %nosuch"}},
	}
	cells := make([]string, len(tests))
	for i, tt := range tests {
		cells[i] = tt.cell
	}
	// There is no SLURM.
	u := newUser(t, "SLURM_CONF=/nowhere/slurm.conf")
	for i, got := range u.executeEach(t, cells) {
		if got.Status != "error" {
			t.Errorf("%s: %+v, want an error", cells[i], got)
		}
		for _, want := range tests[i].want {
			if !strings.Contains(got.Value, want) {
				t.Errorf("%s: %q lacks %q", cells[i], got.Value, want)
			}
		}
	}
}

// cellReply is the kernel's reply to a cell.
type cellReply struct {
	Status string `json:"status"`
	Value  string `json:"evalue"`
}

// executeEach executes cells in one session of the real kernel, even after one fails.
func (u user) executeEach(t *testing.T, cells []string) []cellReply {
	t.Helper()
	const script = `
import json, sys
from jupyter_client.manager import start_new_kernel
import ports
manager, client = start_new_kernel(kernel_name="gonbatch", startup_timeout=600, cwd=sys.argv[1])
replies = [client.execute_interactive(cell, timeout=600, output_hook=lambda message: None)["content"] for cell in json.load(sys.stdin)]
manager.shutdown_kernel()
json.dump(replies, sys.stdout)
`
	text, err := json.Marshal(cells)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), jupyter.Python(t), "-c", script, u.folder)
	cmd.Dir, cmd.Env, cmd.Stdin = u.folder, append(os.Environ(), u.kernelEnv(t)...), bytes.NewReader(text)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := bounded.Output(cmd)
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	var replies []cellReply
	if err := json.Unmarshal(out, &replies); err != nil || len(replies) != len(cells) {
		t.Fatalf("%d replies to %d cells, %v\n%s", len(replies), len(cells), err, out)
	}
	return replies
}

// checkSession checks the runs that the notebook submitted.
func (u user) checkSession(t *testing.T) {
	t.Helper()
	runs, err := rundir.List(filepath.Join(u.folder, "runs"))
	if err != nil || len(runs) != 3 {
		t.Fatalf("runs %v, %v; want 3", runs, err)
	}
	m, err := rundir.ReadManifest(runs[1])
	if err != nil || len(m.Cells) != 1 {
		t.Errorf("the job of one cell has the cells %+v, %v; want one", m.Cells, err)
	}
	left, err := filepath.Glob(filepath.Join(u.folder, ".session-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("files are left: %v, %v", left, err)
	}
}

// execute executes one of the user's notebooks with the real kernel.
func (u user) execute(t *testing.T, notebook string) jupyter.Result {
	t.Helper()
	env := u.kernelEnv(t)
	return jupyter.Execute(t, jupyter.Run{
		Notebook: filepath.Join(u.folder, notebook), Kernel: kernel.Name, DataDir: strings.TrimPrefix(env[0], "JUPYTER_DATA_DIR="),
		Folder: u.folder, Env: env, CellLimit: 5 * time.Minute,
	})
}

// kernelEnv installs the real kernel for one test, and returns the environment in which a client
// finds it. JUPYTER_DATA_DIR comes first.
func (u user) kernelEnv(t *testing.T) []string {
	t.Helper()
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
	return append([]string{"JUPYTER_DATA_DIR=" + dataDir, "GONBATCH_SOURCE=" + root, "XDG_STATE_HOME=" + t.TempDir(), "GONBATCH_CHECKPOINTS=" + t.TempDir(), jupyter.ClientPath(root)}, u.env...)
}
