package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gonbatch/internal/rundir"
)

// twoNodes is two network namespaces that a pair of interfaces connects, as a cable connects two
// machines. Each has its own host name, node0 and node1.
type twoNodes struct {
	prefix string
	folder string // With the scripts.
}

// nodeInterface is the interface of each node.
const nodeInterface = "eth0"

func nodeAddress(node int) string { return fmt.Sprintf("10.78.0.%d", node+1) }

// newTwoNodes creates them.
func newTwoNodes(ctx context.Context) (_ *twoNodes, err error) {
	if os.Getuid() != 0 {
		return nil, fmt.Errorf("-only nodes creates network namespaces, for which it needs root, and this is user %d: run it with sudo, or as root in a container with CAP_NET_ADMIN and CAP_SYS_ADMIN", os.Getuid())
	}
	for _, command := range []string{"ip", "tc", "unshare", "hostname"} {
		if _, err := exec.LookPath(command); err != nil {
			return nil, fmt.Errorf("-only nodes needs the command %s (Debian: apt-get install iproute2 util-linux hostname): %w", command, err)
		}
	}
	n := &twoNodes{prefix: fmt.Sprintf("gbbench%d", os.Getpid())}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.close())
		}
	}()
	if n.folder, err = os.MkdirTemp("", "bench-nodes-"); err != nil {
		return n, err
	}
	if err := n.connect(ctx); err != nil {
		return n, err
	}
	return n, errors.Join(
		os.WriteFile(n.agent(), []byte(n.agentScript()), 0o755), //nolint:gosec // a program
		os.WriteFile(n.named(), []byte(namedScript), 0o755))     //nolint:gosec // a program
}

// connect creates the namespaces and their interfaces.
func (n *twoNodes) connect(ctx context.Context) error {
	for node := range 2 {
		if err := command(ctx, "ip", "netns", "add", n.name(node)); err != nil {
			return err
		}
		// As a machine knows its own name, and the other's.
		hosts := fmt.Sprintf("127.0.0.1 localhost\n%s node0\n%s node1\n", nodeAddress(0), nodeAddress(1))
		if err := os.MkdirAll(n.etc(node), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(n.etc(node), "hosts"), []byte(hosts), 0o644); err != nil {
			return err
		}
	}
	if err := command(ctx, "ip", "link", "add", nodeInterface, "netns", n.name(0), "type", "veth", "peer", "name", nodeInterface, "netns", n.name(1)); err != nil {
		return err
	}
	for node := range 2 {
		for _, args := range [][]string{
			{"addr", "add", nodeAddress(node) + "/24", "dev", nodeInterface}, {"link", "set", nodeInterface, "up"}, {"link", "set", "lo", "up"},
		} {
			if err := command(ctx, "ip", append([]string{"-n", n.name(node)}, args...)...); err != nil {
				return err
			}
		}
	}
	return nil
}

// shape limits the speed of both interfaces. It adds no delay: only the rate is that of the
// network.
func (n *twoNodes) shape(ctx context.Context, gigabits int) error {
	// Enough for 100 us, and for the largest packet that the kernel hands over at once.
	burst := max(256<<10, gigabits*1e9/8/10_000)
	for node := range 2 {
		if err := command(ctx, "ip", "netns", "exec", n.name(node), "tc", "qdisc", "replace", "dev", nodeInterface, "root",
			"tbf", "rate", fmt.Sprint(gigabits, "gbit"), "burst", strconv.Itoa(burst), "latency", "20ms"); err != nil {
			return err
		}
	}
	return nil
}

// close removes the nodes.
func (n *twoNodes) close() error {
	var all []error
	for node := range 2 {
		if _, err := os.Stat(filepath.Join("/run/netns", n.name(node))); err == nil {
			// Also after an interrupt, whose context has ended.
			all = append(all, command(context.Background(), "ip", "netns", "del", n.name(node)))
		}
		all = append(all, os.RemoveAll(n.etc(node)))
	}
	return errors.Join(append(all, os.RemoveAll(n.folder))...)
}

func (n *twoNodes) name(node int) string { return fmt.Sprintf("%s-%d", n.prefix, node) }

// etc is a folder whose files "ip netns exec" puts over those in /etc.
func (n *twoNodes) etc(node int) string { return filepath.Join("/etc/netns", n.name(node)) }

func (n *twoNodes) agent() string { return filepath.Join(n.folder, "agent") }

// agentScript is what mpirun calls in place of ssh: with a host and the words of a command line.
func (n *twoNodes) agentScript() string {
	return "#!/bin/sh\nshift\nexec " + strings.Join(n.on(1, "sh", "-c"), " ") + ` "$*"` + "\n"
}

// on returns the command line that runs a command on a node. Only the command has the node's name:
// Open MPI tells nodes from one another by it.
func (n *twoNodes) on(node int, words ...string) []string {
	return append([]string{"ip", "netns", "exec", n.name(node), "unshare", "--uts", n.named(), "node" + strconv.Itoa(node)}, words...)
}

// named is a script that sets the host name, and then becomes the rest of its command line.
func (n *twoNodes) named() string { return filepath.Join(n.folder, "named") }

const namedScript = "#!/bin/sh\nhostname \"$1\" && shift && exec \"$@\"\n"

// torchrun starts a command once for each core, with the variables that torchrun sets: rank 0 on
// node0, rank 1 on node1.
func (n *twoNodes) torchrun(words ...string) starter {
	return func(ctx context.Context, cores []int, args []string) ([]*exec.Cmd, error) {
		var cmds []*exec.Cmd
		for rank, core := range cores {
			line := n.on(rank, slices.Concat([]string{"taskset", "-c", strconv.Itoa(core)}, words, args)...)
			cmd := exec.CommandContext(ctx, line[0], line[1:]...)
			cmd.Env = append(os.Environ(), "OMP_NUM_THREADS=1", "MASTER_ADDR="+nodeAddress(0), "MASTER_PORT=29500", "GLOO_SOCKET_IFNAME="+nodeInterface,
				"WORLD_SIZE="+strconv.Itoa(len(cores)), "RANK="+strconv.Itoa(rank), rundir.EnvDevices+"=1", rundir.EnvPlatform+"=cpu")
			cmds = append(cmds, cmd)
		}
		return cmds, nil
	}
}

// mpi starts a program once for each core by mpirun, which connects the nodes by TCP over their
// interface.
func (n *twoNodes) mpi(program string) starter {
	return func(ctx context.Context, cores []int, args []string) ([]*exec.Cmd, error) {
		if len(cores) == 1 {
			return mpi(program)(ctx, cores, args)
		}
		hosts := nodeAddress(0) + ":1," + nodeAddress(1) + ":1"
		line := n.on(0, "mpirun.openmpi", "--allow-run-as-root", "--bind-to", "none", "-n", strconv.Itoa(len(cores)), "--host", hosts,
			"--mca", "plm_rsh_agent", n.agent(), "--mca", "oob_tcp_if_include", nodeInterface,
			"--mca", "pml", "ob1", "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", nodeInterface)
		line = slices.Concat(line, pinned(cores, program), args)
		cmd := exec.CommandContext(ctx, line[0], line[1:]...)
		cmd.Env = append(os.Environ(), rundir.EnvDevices+"=1", rundir.EnvPlatform+"=cpu")
		return []*exec.Cmd{cmd}, nil
	}
}

// command runs a command that is quick.
func command(ctx context.Context, name string, args ...string) error {
	if out, err := exec.CommandContext(ctx, name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
