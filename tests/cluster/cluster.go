package cluster

import (
	"context"
	"embed"
	"fmt"
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

// commandLimit bounds every command: a SLURM client whose controller is gone retries for minutes.
const commandLimit = 5 * time.Minute

// Cluster is a running SLURM cluster. Its methods may be called from several goroutines.
type Cluster struct {
	// Dir holds the cluster's configuration (slurm.conf), logs (log/) and state. Every node sees it under the same path.
	Dir string
	// Nodes are the names of the compute nodes: n1, n2, n3.
	Nodes []string

	t testing.TB
}

// Start brings up a cluster and ends it when the test ends, however it ends: also after a panic, a time-out of `go test`
// or a kill of the test program.
func Start(t testing.TB, opts ...Option) *Cluster {
	t.Helper()
	require(t)
	s := newSettings(opts)
	c := &Cluster{Dir: newDir(t), t: t}
	for i := range s.nodes {
		c.Nodes = append(c.Nodes, fmt.Sprintf("n%d", i+1))
	}
	c.writeScripts(s)
	c.guard()
	c.up(s)
	return c
}

// Env returns the variables, as NAME=value, that make every SLURM command talk to this cluster.
func (c *Cluster) Env() []string {
	return []string{"SLURM_CONF=" + filepath.Join(c.Dir, "slurm.conf")}
}

// Run runs a command on the login node and returns its output, standard error included. The error holds the output too.
func (c *Cluster) Run(name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), commandLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), c.Env()...)
	return output(cmd)
}

// On runs a command on a compute node and returns its output, standard error included. The error holds the output too.
func (c *Cluster) On(node string, command ...string) (string, error) {
	return c.Run(c.script("on"), append([]string{node}, command...)...)
}

// Crash pulls the plug of a node: all of its processes die at once and its network is gone.
func (c *Cluster) Crash(node string) {
	c.t.Helper()
	c.node(node, "crash")
}

// Boot starts a node again after a Crash.
func (c *Cluster) Boot(node string) {
	c.t.Helper()
	c.node(node, "start")
}

func (c *Cluster) node(name, verb string) {
	c.t.Helper()
	if out, err := c.Run(c.script("node.sh"), c.Dir, name, verb); err != nil {
		c.t.Fatalf("%s node %s: %v\n%s", verb, name, err, out)
	}
}

func (c *Cluster) script(name string) string { return filepath.Join(c.Dir, name) }

// newDir makes a folder with a short name: munge's socket lies in it, and a socket's path has a limit of 108 bytes.
func newDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "slurm-")
	if err != nil {
		t.Fatalf("cluster: %v", err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatalf("cluster: %v", err)
	}
	return dir
}

func (c *Cluster) writeScripts(s settings) {
	c.t.Helper()
	files := map[string][]byte{"extra.conf": []byte(strings.Join(s.conf, "\n") + "\n")}
	for _, name := range []string{"up.sh", "down.sh", "node.sh"} {
		text, err := scripts.ReadFile(name)
		if err != nil {
			c.t.Fatalf("cluster: %v", err)
		}
		files[name] = text
	}
	for name, text := range files {
		if err := os.WriteFile(c.script(name), text, 0o755); err != nil {
			c.t.Fatalf("cluster: %v", err)
		}
	}
}

// guard ends the cluster when the test ends. The watcher is a process of its own session that waits for its standard input to
// close: that also happens when this program is killed.
func (c *Cluster) guard() {
	c.t.Helper()
	watcher := exec.Command("setsid", "bash", "-c", `cat >/dev/null; bash "$0/down.sh" "$0"; rm -rf "$0"`, c.Dir)
	stdin, err := watcher.StdinPipe()
	if err == nil {
		err = watcher.Start()
	}
	if err != nil {
		_ = os.RemoveAll(c.Dir)
		c.t.Fatalf("cluster: start the process that ends the cluster: %v", err)
	}
	c.t.Cleanup(func() {
		if c.t.Failed() {
			c.logTails()
		}
		_ = stdin.Close()
		_ = watcher.Wait()
	})
}

// up runs up.sh with its output in a file: the daemons that it leaves behind would keep a pipe open.
func (c *Cluster) up(s settings) {
	c.t.Helper()
	log, err := os.Create(filepath.Join(c.Dir, "up.log"))
	if err != nil {
		c.t.Fatalf("cluster: %v", err)
	}
	defer log.Close()
	ctx, cancel := context.WithTimeout(context.Background(), commandLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", c.script("up.sh"), c.Dir)
	cmd.Env = append(os.Environ(),
		"NODES="+strconv.Itoa(s.nodes), "CPUS="+strconv.Itoa(s.cpus), "MEM="+strconv.Itoa(s.memoryMB), "GPUS="+strconv.Itoa(s.gpus),
		"EXTRA_CONF="+c.script("extra.conf"))
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Run(); err != nil {
		text, _ := os.ReadFile(log.Name())
		c.t.Fatalf("cluster: up.sh: %v\n%s", err, text)
	}
}

// logTails shows the end of the controller's and the nodes' logs beside a failed test.
func (c *Cluster) logTails() {
	c.t.Helper()
	logs, _ := filepath.Glob(filepath.Join(c.Dir, "log", "*.log"))
	for _, path := range logs {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		c.t.Logf("%s ends with:\n%s", filepath.Base(path), strings.Join(lines[max(0, len(lines)-15):], "\n"))
	}
}

func output(cmd *exec.Cmd) (string, error) {
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("%s: %w: %s", cmd.Args[0], err, strings.TrimSpace(string(out)))
	}
	return string(out), nil
}
