package browser

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"gonbatch/distributed/ranktest"
	"gonbatch/tests/jupyter"
)

// serverLimit is how long JupyterLab may take to answer, on a busy machine.
const serverLimit = 5 * time.Minute

// Options configure Open.
type Options struct {
	// Folder has the user's notebooks.
	Folder string
	// DataDir is the Jupyter data folder that has the kernel.
	DataDir string
	// Env are additional variables for the server and its kernels, as NAME=value.
	Env []string
}

// Open starts JupyterLab and opens it in a browser; both end with the test. Screenshots are saved
// in .cache/screenshots/TEST.
func Open(t testing.TB, opts Options) *Lab {
	t.Helper()
	root, err := jupyter.Root()
	if err != nil {
		t.Fatal(err)
	}
	venv, chromium := require(t, root)
	l := &Lab{Folder: filepath.Join(root, ".cache", "screenshots", strings.ReplaceAll(t.Name(), "/", "-")), t: t, answers: make(chan answer)}
	if err := errors.Join(os.RemoveAll(l.Folder), os.MkdirAll(l.Folder, 0o755)); err != nil {
		t.Fatal(err)
	}
	url := l.serve(venv, opts)
	l.browse(filepath.Join(venv, "bin", "python"), chromium, url)
	return l
}

// require finds JupyterLab's Python environment and the browser. Without them it skips the test, or
// fails it with CI=true.
func require(t testing.TB, root string) (venv, chromium string) {
	t.Helper()
	venv = filepath.Join(root, ".cache", "lab-venv")
	var reason string
	if _, err := os.Stat(filepath.Join(venv, "requirements.txt")); errors.Is(err, fs.ErrNotExist) {
		reason = "no Python environment with JupyterLab in .cache/lab-venv: run `make setup`"
	}
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		reason = "chromium not found: run `make setup` as root, or apt-get install chromium"
	}
	switch {
	case reason == "":
	case os.Getenv("CI") == "true":
		t.Fatal("CI=true, but " + reason)
	default:
		t.Skip(reason)
	}
	return venv, chromium
}

// serve starts JupyterLab's server and returns its address. It logs the server's output if the test
// fails.
func (l *Lab) serve(venv string, opts Options) (url string) {
	l.t.Helper()
	address := ranktest.FreeAddress(l.t)
	_, port, _ := strings.Cut(address, ":")
	settings, home := l.t.TempDir(), l.t.TempDir()
	if err := writeSettings(settings); err != nil {
		l.t.Fatal(err)
	}
	var log bytes.Buffer
	// The server listens on this machine only and ends with the test: it needs no password.
	cmd := exec.Command(filepath.Join(venv, "bin", "python"), "-m", "jupyter", "lab", "--no-browser", "--allow-root", "--ip=127.0.0.1",
		"--port="+port, "--port-retries=0", "--IdentityProvider.token=", "--ServerApp.disable_check_xsrf=True",
		"--ServerApp.root_dir="+opts.Folder, "--LabApp.news_url=", "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
		"--LabApp.user_settings_dir="+settings, "--LabApp.workspaces_dir="+filepath.Join(home, "workspaces"))
	cmd.Dir, cmd.Stdout, cmd.Stderr = opts.Folder, &log, &log
	cmd.Env = append(append(os.Environ(), opts.Env...), "JUPYTER_DATA_DIR="+opts.DataDir, "JUPYTER_CONFIG_DIR="+home,
		"JUPYTER_RUNTIME_DIR="+filepath.Join(home, "runtime"), "PATH="+filepath.Join(venv, "bin")+":"+os.Getenv("PATH"))
	ended := l.start(cmd, "JupyterLab", &log)
	url = "http://" + address
	if err := answers(url+"/api", ended); err != nil {
		l.t.Fatalf("JupyterLab: %v", err)
	}
	return url
}

// writeSettings turns off what could disturb a test: news, update checks, and autosaves.
func writeSettings(dir string) error {
	all := map[string]any{
		"apputils-extension/notification.jupyterlab-settings": map[string]any{"fetchNews": "false", "checkForUpdates": false},
		"docmanager-extension/plugin.jupyterlab-settings":     map[string]any{"autosave": false},
		// All cells are in the page, wherever it has scrolled to.
		"notebook-extension/tracker.jupyterlab-settings": map[string]any{"windowingMode": "none"},
	}
	for name, values := range all {
		path := filepath.Join(dir, "@jupyterlab", name)
		text, err := json.Marshal(values)
		if err == nil {
			err = errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, text, 0o644))
		}
		if err != nil {
			return fmt.Errorf("JupyterLab's settings: %w", err)
		}
	}
	return nil
}

// browse starts the browser.
func (l *Lab) browse(python, chromium, url string) {
	l.t.Helper()
	cmd := exec.Command(python, "-c", drive, chromium, url, l.Folder)
	var log bytes.Buffer
	cmd.Stderr = &log
	in, err := cmd.StdinPipe()
	if err != nil {
		l.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		l.t.Fatal(err)
	}
	l.in = in
	l.t.Cleanup(func() { _ = in.Close() })
	l.start(cmd, "the browser", &log)
	go l.read(out)
	var version string
	if err := l.answer(serverLimit, &version); err != nil {
		l.t.Fatalf("browser: %v", err)
	}
	l.t.Log("Chromium", version)
}

// start starts a process in its own process group, which ends with the test.
func (l *Lab) start(cmd *exec.Cmd, name string, log *bytes.Buffer) (ended <-chan struct{}) {
	l.t.Helper()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Start(); err != nil {
		l.t.Fatalf("%s: %v", name, err)
	}
	done := make(chan struct{})
	go func() { _ = cmd.Wait(); close(done) }()
	l.t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
		select {
		case <-done:
		case <-time.After(20 * time.Second):
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
			<-done
		}
		if l.t.Failed() {
			l.t.Logf("%s:\n%s", name, log.String())
		}
	})
	return done
}

// answers waits until a server answers, or returns an error if it has ended.
func answers(url string, ended <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(context.Background(), serverLimit)
	defer cancel()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err == nil {
			_ = response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
			err = errors.New(response.Status)
		}
		select {
		case <-ended:
			return errors.New("the server has ended")
		case <-ctx.Done():
			return fmt.Errorf("no answer from %s within %v: %w", url, serverLimit, err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}
