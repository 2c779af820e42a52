package cluster

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

//go:embed up.sh down.sh node.sh
var scripts embed.FS

// commandLimit bounds every command: without a controller, a SLURM client retries for minutes.
const commandLimit = 5 * time.Minute

// Cluster is a running SLURM cluster. Its methods may be called from several goroutines.
type Cluster struct {
	// Dir holds the cluster's configuration (slurm.conf), logs (log/) and state. Every node sees it
	// under the same path.
	Dir string
	// Nodes are the names of the compute nodes: n1, n2 and so on.
	Nodes []string

	watcher *exec.Cmd
	alive   io.Closer
}

// Start brings up a cluster that ends with the test, however the test ends: even after a panic, a
// timeout of go test, or a kill of the test program. If no cluster can run here, the test is
// skipped; with CI=true it fails.
func Start(t testing.TB, opts ...Option) *Cluster {
	t.Helper()
	require(t)
	c, err := Open(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			c.logTails(t)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// Open is Start for a program that is not a test: the cluster ends with Close, or with the program.
func Open(opts ...Option) (*Cluster, error) {
	s := newSettings(opts)
	// The name is short: munge's socket is in the folder, and the path of a socket is limited to
	// 108 bytes.
	dir, err := os.MkdirTemp("/tmp", "slurm-")
	if err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	c := &Cluster{Dir: dir}
	for i := range s.nodes {
		c.Nodes = append(c.Nodes, fmt.Sprintf("n%d", i+1))
	}
	if err := errors.Join(os.Chmod(dir, 0o755), c.writeScripts()); err != nil {
		return nil, fmt.Errorf("cluster: %w", errors.Join(err, os.RemoveAll(dir)))
	}
	if err := c.guard(); err != nil {
		return nil, fmt.Errorf("cluster: start the process that ends the cluster: %w", errors.Join(err, os.RemoveAll(dir)))
	}
	if err := c.up(s); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// Close ends the cluster and removes its folder.
func (c *Cluster) Close() error {
	return errors.Join(c.alive.Close(), c.watcher.Wait())
}

// Env returns the variables, as NAME=value, that make SLURM commands use this cluster.
func (c *Cluster) Env() []string {
	return []string{"SLURM_CONF=" + filepath.Join(c.Dir, "slurm.conf")}
}

// Run runs a command on the login node and returns its output, including standard error. The error
// also contains the output.
func (c *Cluster) Run(name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), commandLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), c.Env()...)
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("%s: %w: %s", name, err, strings.TrimSpace(string(out)))
	}
	return string(out), nil
}

// On runs a command on a compute node and returns its output, including standard error. The error
// also contains the output.
func (c *Cluster) On(node string, command ...string) (string, error) {
	return c.Run(c.file("on"), append([]string{node}, command...)...)
}

// Crash pulls the plug of a node: all of its processes die at once, and its network is gone.
func (c *Cluster) Crash(node string) error {
	_, err := c.Run(c.file("node.sh"), c.Dir, node, "crash")
	return err
}

// Boot starts a node again after a Crash.
func (c *Cluster) Boot(node string) error {
	// The output goes to a file: the node's processes would keep a pipe open.
	_, err := c.Run("bash", "-c", `"$0"/node.sh "$0" "$1" start >"$0/boot.log" 2>&1 || { cat "$0/boot.log"; exit 1; }`, c.Dir, node)
	return err
}

func (c *Cluster) file(name string) string { return filepath.Join(c.Dir, name) }

func (c *Cluster) writeScripts() error {
	for _, name := range []string{"up.sh", "down.sh", "node.sh"} {
		text, err := scripts.ReadFile(name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(c.file(name), text, 0o755); err != nil {
			return err
		}
	}
	return nil
}

// guard starts the process that ends the cluster. It has its own session and waits until its
// standard input closes, which also happens when this program is killed.
func (c *Cluster) guard() error {
	c.watcher = exec.Command("setsid", "bash", "-c", `cat >/dev/null; bash "$0/down.sh" "$0"; rm -rf "$0"`, c.Dir)
	stdin, err := c.watcher.StdinPipe()
	if err != nil {
		return err
	}
	c.alive = stdin
	return c.watcher.Start()
}

// up runs up.sh with its output in a file: the daemons that it leaves running would keep a pipe
// open.
func (c *Cluster) up(s settings) error {
	log, err := os.Create(c.file("up.log"))
	if err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	defer log.Close() //nolint:errcheck // the program that writes it has its own handle
	ctx, cancel := context.WithTimeout(context.Background(), commandLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", c.file("up.sh"), c.Dir)
	cmd.Env = append(os.Environ(),
		"NODES="+strconv.Itoa(s.nodes), "GPUS="+strconv.Itoa(s.gpus), "GPUTYPE="+s.gpuType, "CLUSTER="+s.name, "GPU_SCRIPT="+s.gpuScript, "PROLOG="+s.prolog)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Run(); err != nil {
		text, _ := os.ReadFile(log.Name())
		return fmt.Errorf("cluster: up.sh: %w\n%s", err, text)
	}
	return nil
}

// logTails shows the end of the controller's and the nodes' logs with a failed test.
func (c *Cluster) logTails(t testing.TB) {
	t.Helper()
	logs, _ := filepath.Glob(c.file(filepath.Join("log", "*.log")))
	for _, path := range logs {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		t.Logf("%s ends with:\n%s", filepath.Base(path), strings.Join(lines[max(0, len(lines)-400):], "\n"))
	}
}
