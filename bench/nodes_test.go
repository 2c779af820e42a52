package main

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"gonbatch/internal/machine"
)

// TestTwoNodes: each rank is on its own node, which has a name, an address and a speed, and nothing
// is left of them afterwards.
func TestTwoNodes(t *testing.T) {
	if os.Getuid() != 0 {
		machine.Lacks(t, "network namespaces need root")
	}
	for _, command := range []string{"ip", "tc", "mpirun.openmpi"} {
		if _, err := exec.LookPath(command); err != nil {
			machine.Lacks(t, command+" not found: run `make setup`")
		}
	}
	n, err := newTwoNodes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	closed := false
	defer func() {
		if err := n.close(); err != nil && !closed {
			t.Error(err)
		}
	}()
	const script = `echo rank ${RANK:-$OMPI_COMM_WORLD_RANK} on $(hostname) at $(ip -4 -o addr show eth0 | tr -s ' ' | cut -d ' ' -f 4): $(getent hosts node0 node1 | cut -d ' ' -f 1)`
	want := []string{"rank 0 on node0 at 10.78.0.1/24: 10.78.0.1 10.78.0.2", "rank 1 on node1 at 10.78.0.2/24: 10.78.0.1 10.78.0.2"}
	for name, start := range map[string]starter{"torchrun's variables": n.torchrun("bash"), "mpirun": n.mpi("bash")} {
		cmds, err := start(t.Context(), []int{0, 0}, []string{"-c", script})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, cmd := range cmds {
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%s: %v\n%s", name, err, out)
			}
			got = append(got, strings.Split(strings.TrimSpace(string(out)), "\n")...)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	for _, gigabits := range nodeGigabits { // Each replaces the last one.
		if err := n.shape(t.Context(), gigabits); err != nil {
			t.Fatal(err)
		}
	}
	for node := range 2 {
		out, err := exec.CommandContext(t.Context(), "ip", "netns", "exec", n.name(node), "tc", "qdisc", "show", "dev", nodeInterface).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "tbf") || !strings.Contains(string(out), "rate 25Gbit") {
			t.Errorf("node %d: %s, %v; want tbf of 25Gbit", node, out, err)
		}
	}
	if err := n.close(); err != nil {
		t.Fatal(err)
	}
	closed = true
	left, err := exec.CommandContext(t.Context(), "ip", "netns", "list").CombinedOutput()
	if err != nil || strings.Contains(string(left), n.prefix) {
		t.Errorf("namespaces that are left: %s, %v", left, err)
	}
	for _, path := range []string{n.folder, n.etc(0), n.etc(1)} {
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s is left", path)
		}
	}
}

func TestNodesTable(t *testing.T) {
	n := nodeNetwork{Name: "cnn", Title: "CNN", Batch: 64, Steps: 100}
	all := []nodeContender{{alone: 0}, {alone: 0}, {alone: 0}, {alone: 3}, {alone: 0}}
	n.Rows = []nodeRow{
		{Name: "gonbatch, our TCP, overlap", Version: "with XLA", Transport: overTCP, Overlaps: true, OneRounds: []float64{30, 10, 20}, TwoRounds: [][]float64{{25, 20, 40}, {21}, {20}}},
		{Name: "gonbatch, our TCP", Transport: overTCP, TwoRounds: [][]float64{{50}, {22}, {20}}},
		{Name: "gonbatch, Open MPI", Transport: inProgram, TwoRounds: [][]float64{{20}, {22}, {21}}},
		{Name: torchBest, Version: "2", OneRounds: []float64{40}, TwoRounds: [][]float64{{80}, {50}, {40}}},
		{Name: "gonbatch, Open MPI, zero1", Transport: inProgram, Zero1: true, TwoRounds: [][]float64{{20}, {25}, {16}}},
	}
	for _, gigabits := range nodeGigabits {
		rounds := make([][]float64, len(bucketSizes))
		for b := range rounds {
			rounds[b] = []float64{30, float64(20 + (b+gigabits)%len(bucketSizes)), 1}
		}
		n.Buckets = append(n.Buckets, bucketRow{Gigabits: gigabits, Rounds: rounds})
	}
	n.summarize(all)
	report := nodeReport{CPU: "A CPU", Load: "0.02", Rounds: 3, Networks: []nodeNetwork{n}, Links: []nodeLink{{link: link{Name: overTCP, Alpha: 31, Bandwidth: 120}, Gigabits: 1}}}
	want := `A CPU, load average before: 0.02.

## The link

What gonbatch's transports make of it, from all-reduces of 4 B and 16 MB:

| link | transport | alpha | bandwidth |
|---|---|--:|--:|
| 1 Gbit/s | in a program, our TCP | 31 us | 0.96 Gbit/s |

## CNN

64 inputs for each rank, 100 steps a round.

| ms a step | one rank | two, 1 Gbit/s | two, 10 Gbit/s | two, 25 Gbit/s |
|---|--:|--:|--:|--:|
| gonbatch, our TCP, overlap with XLA | 20.0 | 25.0 (1.60 x) | 21.0 (1.90 x) | 20.0 (2.00 x) |
| gonbatch, our TCP | 20.0 | 50.0 (0.80 x) | 22.0 (1.82 x) | 20.0 (2.00 x) |
| gonbatch, Open MPI | 20.0 | 20.0 (2.00 x) | 22.0 (1.82 x) | 21.0 (1.90 x) |
| PyTorch DDP, best settings 2 | 40.0 | 80.0 (1.00 x) | 50.0 (1.60 x) | 40.0 (2.00 x) |
| gonbatch, Open MPI, zero1 | 20.0 | 20.0 (2.00 x) | 25.0 (1.60 x) | 16.0 (2.50 x) |

With gonbatch's defaults: 2.00 times at 1 Gbit/s (reached), 1.90 times at 10 Gbit/s (reached), 2.00 times at 25 Gbit/s (reached).

With zero1: 2.00 times at 1 Gbit/s (reached), 1.60 times at 10 Gbit/s (missed), 2.50 times at 25 Gbit/s (reached).

| ms a step over TCP, with overlap, in buckets of | 256 KB | 512 KB | 1 MB | 2 MB | 4 MB | 12 MB |
|---|--:|--:|--:|--:|--:|--:|
| 1 Gbit/s | 21.0 | 22.0 | 23.0 | 24.0 | 25.0 | **20.0** |
| 10 Gbit/s | 24.0 | 25.0 | **20.0** | 21.0 | 22.0 | 23.0 |
| 25 Gbit/s | 21.0 | 22.0 | 23.0 | 24.0 | 25.0 | **20.0** |
`
	if got := report.markdown(); !strings.HasSuffix(got, want) {
		t.Errorf("table:\n%s\nwant at its end:\n%s", got, want)
	}
	report.Networks[0].Rows[2].Two[0] = 40
	if got := report.markdown(); !strings.Contains(got, "With gonbatch's defaults: 1.60 times at 1 Gbit/s (missed), ") {
		t.Errorf("a goal that is missed:\n%s", got)
	}
}
