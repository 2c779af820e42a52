package ranktest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"gonbatch/internal/bounded"
	"gonbatch/internal/machine"
)

// Network simulates a few machines: each has its own network interfaces, and a switch connects
// them. As on Debian, a machine's own name resolves to 127.0.1.1.
type Network struct {
	prefix string
	t      *testing.T
}

// networks counts the networks of this process.
var networks atomic.Int64

// NewNetwork creates a network of n machines that lasts as long as the test. It needs root and
// iproute2.
func NewNetwork(t *testing.T, n int) *Network {
	t.Helper()
	if _, err := exec.LookPath("ip"); err != nil || os.Getuid() != 0 {
		machine.Lacks(t, "network namespaces need root and iproute2")
	}
	network := &Network{fmt.Sprintf("gb%d-%d", os.Getpid(), networks.Add(1)), t}
	network.add("switch")
	network.ip("-n", network.name("switch"), "link", "add", "name", "switch0", "type", "bridge")
	network.ip("-n", network.name("switch"), "link", "set", "switch0", "up")
	for rank := range n {
		network.plug(rank, n)
	}
	return network
}

// add creates a namespace.
func (n *Network) add(what string) {
	n.t.Helper()
	n.ip("netns", "add", n.name(what))
	n.t.Cleanup(func() {
		n.ip("netns", "del", n.name(what))
		if err := os.RemoveAll(filepath.Join("/etc/netns", n.name(what))); err != nil {
			n.t.Error(err)
		}
	})
}

// plug creates a machine and connects it to the switch.
func (n *Network) plug(rank, size int) {
	n.t.Helper()
	machine, port := n.name(fmt.Sprint(rank)), fmt.Sprintf("port%d", rank)
	n.add(fmt.Sprint(rank))
	n.ip("link", "add", "eth0", "netns", machine, "type", "veth", "peer", "name", port, "netns", n.name("switch"))
	n.Heal(rank)
	n.ip("-n", n.name("switch"), "link", "set", port, "up")
	n.ip("-n", machine, "addr", "add", address(rank)+"/24", "dev", "eth0")
	n.ip("-n", machine, "link", "set", "eth0", "up")
	n.ip("-n", machine, "link", "set", "lo", "up")
	hosts := "127.0.0.1 localhost\n"
	for other := range size {
		at := address(other)
		if other == rank {
			at = "127.0.1.1"
		}
		hosts += fmt.Sprintf("%s node%d\n", at, other)
	}
	folder := filepath.Join("/etc/netns", machine)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		n.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "hosts"), []byte(hosts), 0o644); err != nil {
		n.t.Fatal(err)
	}
}

func address(rank int) string { return fmt.Sprintf("10.77.0.%d", rank+1) }

func (n *Network) name(what string) string { return n.prefix + "-" + what }

func (n *Network) ip(args ...string) {
	n.t.Helper()
	if out, err := bounded.CombinedOutput(exec.Command("ip", args...)); err != nil {
		n.t.Fatalf("ip %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

// Cut silently drops all packets to and from the rank's machine.
func (n *Network) Cut(rank int) {
	n.ip("-n", n.name("switch"), "link", "set", fmt.Sprintf("port%d", rank), "nomaster")
}

// Heal undoes Cut.
func (n *Network) Heal(rank int) {
	n.ip("-n", n.name("switch"), "link", "set", fmt.Sprintf("port%d", rank), "master", "switch0")
}

// Launcher starts each rank on its own machine, as torchrun does, with rank 0's name as the
// rendezvous.
func (n *Network) Launcher() Launcher {
	return Launcher{Name: Torchrun.Name, within: func(rank int) []string { return []string{"ip", "netns", "exec", n.name(fmt.Sprint(rank))} }, master: "node0:29555"}
}
