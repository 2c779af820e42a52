package kernel_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"gonbatch/internal/bounded"
	"gonbatch/internal/proc"
	"gonbatch/internal/rundir"
	"gonbatch/kernel"
	"gonbatch/tests/jupyter"
)

// TestMain also acts as the program that Jupyter starts, PROGRAM kernel run --connection-file FILE,
// and that builds cells for it.
func TestMain(m *testing.M) {
	if len(os.Args) < 3 || os.Args[1] != "kernel" {
		os.Exit(m.Run())
	}
	code, err := kernel.Command(context.Background(), os.Args[2], os.Args[3:], os.Environ(), os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// TestNotebook executes a notebook whose cells import GoMLX and gonbatch's own packages, without a
// network and without a set-up cell.
func TestNotebook(t *testing.T) {
	tmp := t.TempDir()
	result := execute(t, "testdata/gomlx.ipynb", "TMPDIR="+tmp)
	if result.Error != "" {
		t.Fatalf("%s\n%s", result.Error, result.Log)
	}
	want := []string{"", "sum of squares: 14\n", "7\n", "devices 1, plugins /somewhere/plugins\n"}
	if !slices.Equal(result.Outputs, want) {
		t.Errorf("outputs:\n%q, want\n%q\n%s", result.Outputs, want, result.Log)
	}
	// The client has shut the kernel down.
	waitFor(t, "the session's files to go", func() bool {
		left, err := filepath.Glob(filepath.Join(tmp, "gonbatch-kernel-*"))
		return err == nil && len(left) == 0
	})
}

// TestKeptModel: a model and a tensor of one cell are available in later ones.
func TestKeptModel(t *testing.T) {
	result := execute(t, "testdata/keptmodel.ipynb")
	if result.Error != "" || len(result.Outputs) != 5 {
		t.Fatalf("%s\n%q\n%s", result.Error, result.Outputs, result.Log)
	}
	made := result.Outputs[1]
	if !strings.HasPrefix(made, "[[") || result.Outputs[3] != made+made {
		t.Errorf("one cell predicted %q, a later one %q", made, result.Outputs[3])
	}
	if want := regexp.MustCompile(`^kept: last \(\d+ bytes, changed at [0-9: -]+\), weights \(\d+ bytes, changed at [0-9: -]+\)\n$`); !want.MatchString(result.Outputs[4]) {
		t.Errorf("%%keep put out %q", result.Outputs[4])
	}
}

// TestFailingCell: a cell that does not compile fails the notebook with the compiler's own message
// in plain text.
func TestFailingCell(t *testing.T) {
	result := execute(t, "testdata/broken.ipynb")
	if !strings.Contains(result.Error, "undefined: nothing") {
		t.Errorf("error: %q, want the compiler's message", result.Error)
	}
}

// TestNoOrphans kills a client, its kernel or GoNB with SIGKILL while a cell runs: the cell ends,
// and no process is left.
func TestNoOrphans(t *testing.T) {
	for _, victim := range []string{"client", "kernel", "gonb"} {
		t.Run(victim, func(t *testing.T) {
			mark := fmt.Sprintf("TEST_MARK=%d-%s", os.Getpid(), victim)
			client := startBusyClient(t, mark)
			waitFor(t, "the cell's program to run", func() bool {
				return slices.ContainsFunc(processesWith(mark), func(p process) bool { return strings.HasPrefix(p.name, "gonb_") })
			})
			if victim != "client" {
				kill(t, mark, victim)
				waitFor(t, "GoNB, its cell and gopls to end", func() bool {
					return !slices.ContainsFunc(processesWith(mark), func(p process) bool { return strings.HasPrefix(p.name, "go") })
				})
			}
			_ = client.Process.Kill()
			_ = client.Wait()
			waitFor(t, "all processes to end", func() bool { return len(processesWith(mark)) == 0 })
		})
	}
}

// TestNoOrphansOfCells: processes that a cell has started elsewhere, from Go or a shell, end when
// the kernel is killed, and its folder is removed.
func TestNoOrphansOfCells(t *testing.T) {
	for name, code := range map[string]string{
		"program": `%%\nexec.Command("setsid", "sleep", "3600").Run()`,
		"shell":   `!setsid sleep 3600 & sleep 3600`,
	} {
		t.Run(name, func(t *testing.T) {
			mark := fmt.Sprintf("TEST_MARK=%d-cell-%s", os.Getpid(), name)
			client := startClient(t, mark, code)
			sleeps := func() bool {
				return slices.ContainsFunc(processesWith(mark), func(p process) bool { return p.name == "sleep" })
			}
			waitFor(t, "the cell to start a process", sleeps)
			kill(t, mark, "kernel")
			waitFor(t, "all but the client to end", func() bool { return len(processesWith(mark)) == 1 })
			if left, err := filepath.Glob(filepath.Join(client.tmp, "gonbatch-kernel-*")); err != nil || len(left) > 0 {
				t.Errorf("files are left: %v, %v", left, err)
			}
		})
	}
}

// kill kills a process of a session: its kernel, or GoNB.
func kill(t *testing.T, mark, victim string) {
	t.Helper()
	for _, p := range processesWith(mark) {
		isKernel := strings.Contains(p.commandLine, "--connection-file")
		if victim == "kernel" && isKernel || p.name == victim {
			if err := syscall.Kill(p.pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatalf("no %s among %v", victim, processesWith(mark))
}

// TestRestart restarts the kernel in the middle of a cell: the cell ends, and the new session is
// fresh and works.
func TestRestart(t *testing.T) {
	script := `
import json, sys
from jupyter_client.manager import start_new_kernel
import ports
manager, client = start_new_kernel(kernel_name="gonbatch", startup_timeout=600)
client.execute_interactive("var n = 1\n%keep n\n%%\nn = 2", timeout=600)
client.execute("%%\nselect {}")
while client.get_iopub_msg(timeout=600)["msg_type"] != "execute_input":
    pass
manager.restart_kernel(now=False)
client.wait_for_ready(timeout=600)
texts = []
def hook(message):
    texts.append(message["content"].get("text", ""))
reply = client.execute_interactive("var n = 1\n%%\nfmt.Println(n)", output_hook=hook, timeout=600)["content"]
manager.shutdown_kernel()
print(reply["status"], reply["execution_count"], "".join(texts))
`
	mark, tmp := fmt.Sprintf("TEST_MARK=%d-restart", os.Getpid()), t.TempDir()
	cmd := exec.Command(jupyter.Python(t), "-c", script)
	cmd.Env = append(os.Environ(), append(kernelEnv(t), mark, "TMPDIR="+tmp)...)
	out, err := bounded.CombinedOutput(cmd)
	if err != nil || !strings.HasSuffix(strings.TrimSpace(string(out)), "ok 1 1") {
		t.Errorf("%v\n%s", err, out)
	}
	waitFor(t, "all processes to end", func() bool { return len(processesWith(mark)) == 0 })
	if left, err := filepath.Glob(filepath.Join(tmp, "gonbatch-kernel-*")); err != nil || len(left) > 0 {
		t.Errorf("files are left: %v, %v", left, err)
	}
}

// busyClient is a client whose kernel runs a cell, with tmp as the folder of temporary files.
type busyClient struct {
	*exec.Cmd
	tmp string
}

// startBusyClient starts a client whose kernel runs a cell for an hour.
func startBusyClient(t *testing.T, mark string) *exec.Cmd {
	t.Helper()
	return startClient(t, mark, `import "time"\n%%\ntime.Sleep(time.Hour)`).Cmd
}

// startClient starts a client whose kernel runs a cell, given as the text between quotes in Python.
// All of their processes have mark in the environment.
func startClient(t *testing.T, mark, cell string) busyClient {
	t.Helper()
	tmp := t.TempDir()
	script := `
import time
from jupyter_client.manager import start_new_kernel
import ports
manager, client = start_new_kernel(kernel_name="gonbatch", startup_timeout=600)
client.execute("` + strings.ReplaceAll(cell, `"`, `\"`) + `")
while True:
    message = client.get_iopub_msg(timeout=600)
    if message["msg_type"] == "status" and message["content"]["execution_state"] == "busy":
        break
print("busy", flush=True)
time.sleep(600)
`
	cmd := exec.Command(jupyter.Python(t), "-c", script)
	cmd.Env = append(os.Environ(), append(kernelEnv(t), mark, "TMPDIR="+tmp)...)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	if _, err := stdout.Read(make([]byte, 8)); err != nil {
		t.Fatalf("the client did not start its kernel: %v", err)
	}
	return busyClient{cmd, tmp}
}

func TestRunErrors(t *testing.T) {
	root := sourceRoot(t)
	file := filepath.Join(t.TempDir(), "connection.json")
	if err := os.WriteFile(file, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	goCommand, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	bare := t.TempDir()
	if err := os.Symlink(goCommand, filepath.Join(bare, "go")); err != nil {
		t.Fatal(err)
	}
	empty := t.TempDir()
	tests := []struct {
		name string
		opts kernel.Options
		want []string
	}{
		{name: "no connection file", opts: kernel.Options{SourceDir: root}, want: []string{"no connection file", "--connection-file FILE"}},
		{
			name: "a connection file that is not there", opts: kernel.Options{SourceDir: root, ConnectionFile: "/nowhere/k.json"},
			want: []string{"/nowhere/k.json", "no such file"},
		},
		{
			name: "no go", opts: kernel.Options{SourceDir: root, ConnectionFile: file, Environ: []string{"PATH=" + empty}},
			want: []string{"go not found on PATH", "https://go.dev/dl"},
		},
		{
			name: "no gonb",
			opts: kernel.Options{SourceDir: empty, ConnectionFile: file, Environ: []string{"PATH=" + bare, "HOME=" + empty, "GOPATH=" + empty}},
			want: []string{"not found in " + bare, "run submit kernel install", empty},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.name == "no gonb" {
				t.Setenv("GOPATH", empty)
				t.Setenv("GOBIN", "")
			}
			err := kernel.Run(t.Context(), tt.opts)
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q lacks %q", err, want)
				}
			}
		})
	}
}

func execute(t *testing.T, notebook string, env ...string) jupyter.Result {
	t.Helper()
	vars := append(kernelEnv(t), env...)
	dataDir := strings.TrimPrefix(vars[0], "JUPYTER_DATA_DIR=")
	return jupyter.Execute(t, jupyter.Run{Notebook: notebook, Kernel: kernel.Name, DataDir: dataDir, Env: vars, CellLimit: 5 * time.Minute})
}

// kernelEnv installs this test program as a kernel. JUPYTER_DATA_DIR comes first.
func kernelEnv(t *testing.T) []string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dataDir := t.TempDir()
	if _, err := kernel.Install(kernel.InstallOptions{DataDir: dataDir, Program: self}); err != nil {
		t.Fatal(err)
	}
	return []string{"JUPYTER_DATA_DIR=" + dataDir, rundir.EnvSource + "=" + sourceRoot(t), rundir.EnvPluginDir + "=/somewhere/plugins", "GOPROXY=off",
		"XDG_STATE_HOME=" + t.TempDir(), jupyter.ClientPath(sourceRoot(t))}
}

func sourceRoot(t *testing.T) string {
	t.Helper()
	root, err := jupyter.Root()
	if err != nil {
		t.Fatal(err)
	}
	return root
}

func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if done() {
			return
		}
	}
	t.Fatalf("waited 5 minutes for %s", what)
}

type process struct {
	pid               int
	name, commandLine string
}

// processesWith lists the processes that have the given NAME=value in their environment.
func processesWith(variable string) []process {
	var found []process
	for pid := range proc.With(variable) {
		found = append(found, process{pid, proc.Name(pid), proc.Words(pid)})
	}
	return found
}

func TestInstall(t *testing.T) {
	home := t.TempDir()
	prefix := t.TempDir()
	getenv := func(env map[string]string) func(string) string { return func(name string) string { return env[name] } }
	tests := []struct {
		name string
		opts kernel.InstallOptions
		dir  string
		err  string
	}{
		{
			name: "for the user", opts: kernel.InstallOptions{Getenv: getenv(map[string]string{"HOME": home})},
			dir: home + "/.local/share/jupyter/kernels/gonbatch",
		},
		{
			name: "JUPYTER_DATA_DIR wins over HOME",
			opts: kernel.InstallOptions{Getenv: getenv(map[string]string{"HOME": "/nowhere", "JUPYTER_DATA_DIR": home + "/data"})},
			dir:  home + "/data/kernels/gonbatch",
		},
		{
			name: "for a Python environment", opts: kernel.InstallOptions{Prefix: prefix},
			dir: prefix + "/share/jupyter/kernels/gonbatch",
		},
		{name: "no home", opts: kernel.InstallOptions{Getenv: getenv(nil)}, err: "set JUPYTER_DATA_DIR"},
		{name: "a folder that cannot be made", opts: kernel.InstallOptions{DataDir: "/dev/null/x"}, err: "choose another folder"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.opts.Program = "/usr/local/bin/submit"
			dir, err := kernel.Install(tt.opts)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("error %v, want %q", err, tt.err)
				}
				return
			}
			if err != nil || dir != tt.dir {
				t.Fatalf("installed in %q, %v; want %q", dir, err, tt.dir)
			}
			text, err := os.ReadFile(filepath.Join(dir, "kernel.json"))
			if err != nil {
				t.Fatal(err)
			}
			var spec struct {
				Argv        []string `json:"argv"`
				DisplayName string   `json:"display_name"`
				Language    string   `json:"language"`
				Interrupt   string   `json:"interrupt_mode"`
			}
			if err := json.Unmarshal(text, &spec); err != nil {
				t.Fatal(err)
			}
			want := []string{"/usr/local/bin/submit", "kernel", "run", "--connection-file", "{connection_file}"}
			if !slices.Equal(spec.Argv, want) || spec.DisplayName != "Go (gonbatch)" || spec.Language != "go" || spec.Interrupt != "message" {
				t.Errorf("kernel.json: %s", text)
			}
		})
	}
}
