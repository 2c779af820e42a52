package tests

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gonbatch/kernel"
	"gonbatch/rundir"
	"gonbatch/tests/cluster"
	"gonbatch/tests/jupyter"
)

// TestSubmitFromNotebook submits jobs to a real cluster from cells of a notebook that runs in a real Jupyter client, and waits for
// them there.
func TestSubmitFromNotebook(t *testing.T) {
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
		{": succeeded", "| hello 0"},
		{"hello 1\n"},
		{"STATE", "session-", "succeeded"},
		{"submitting this cell, with the declarations of 2 others", ": "},
		{": succeeded", "| hello from one cell"},
		{"submitting this cell"},
		{": failed", "MagicFailed", "exit code 3"},
	}
	for i, want := range wants {
		for _, text := range want {
			// The first card was replaced while later cells ran.
			if i == 2 && text == ": pending" && strings.Contains(result.Outputs[i], ": succeeded") {
				continue
			}
			if !strings.Contains(result.Outputs[i], text) {
				t.Errorf("cell %d put out %q, want %q", i+1, result.Outputs[i], text)
			}
		}
	}
	if result.Error == "" {
		t.Error("the notebook did not fail with the job")
	}
	u.checkSession(t)
}

// checkSession looks at what the jobs of the notebook were made of.
func (u user) checkSession(t *testing.T) {
	t.Helper()
	runs, err := rundir.List(filepath.Join(u.folder, "runs"))
	if err != nil || len(runs) != 3 {
		t.Fatalf("runs %v, %v; want 3", runs, err)
	}
	m, err := rundir.ReadManifest(runs[1])
	if err != nil || len(m.Steps) != 1 {
		t.Errorf("the job of one cell has the steps %+v, %v; want one", m.Steps, err)
	}
	left, err := filepath.Glob(filepath.Join(u.folder, ".session-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("files are left: %v, %v", left, err)
	}
}

// execute executes a notebook of the user's under the real kernel.
func (u user) execute(t *testing.T, notebook string) jupyter.Result {
	t.Helper()
	env := u.kernelEnv(t)
	return jupyter.Execute(t, jupyter.Run{
		Notebook: filepath.Join(u.folder, notebook), Kernel: kernel.Name, DataDir: strings.TrimPrefix(env[0], "JUPYTER_DATA_DIR="),
		Folder: u.folder, Env: env, CellLimit: 5 * time.Minute,
	})
}

// kernelEnv installs the real kernel for one test, and is the environment in which a client finds it. JUPYTER_DATA_DIR comes first.
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
	return append([]string{"JUPYTER_DATA_DIR=" + dataDir, "GONBATCH_SOURCE=" + root, "XDG_STATE_HOME=" + t.TempDir()}, u.env...)
}
