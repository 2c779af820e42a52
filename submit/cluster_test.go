package submit

import (
	"strings"
	"testing"
)

// testCluster has a default partition of three nodes with GPUs, one of large nodes, and one without
// known nodes.
func testCluster() Cluster {
	node := func(name, partition string, cpus, memory int, gpus map[string]int, features ...string) Node {
		return Node{Name: name, Partitions: []string{partition}, Usable: true, CPUs: cpus, Memory: memory, GPUs: gpus, Features: features}
	}
	return Cluster{
		Partitions: []Partition{{Name: "main", Default: true, Up: true, MaxTime: "02:00:00"}, {Name: "large", Up: true, MaxNodes: 1}, {Name: "cloud", Up: true}, {Name: "closed"},
			{Name: "open", Up: true, Restricted: true, Nodes: 5, MaxMemory: 2000}},
		Nodes: []Node{
			node("n1", "main", 8, 16000, map[string]int{"a100": 4}, "ib"), node("n2", "main", 8, 16000, map[string]int{"a100": 4}, "ib"), node("n3", "main", 64, 16000, nil),
			node("l1", "large", 64, 500000, nil), node("l2", "large", 64, 500000, nil), node("o1", "open", 4, 2000, nil), node("c1", "closed", 64, 500000, map[string]int{"": 8}),
		},
	}
}

// TestMisfit: a job that can never run says which option is the reason, and which partitions can
// run it. What isn't known fits.
func TestMisfit(t *testing.T) {
	for _, tc := range []struct {
		name   string
		spec   JobSpec
		want   string
		limits bool
	}{
		{name: "fits", spec: JobSpec{Nodes: 2, GPUs: GPUs{Count: 4, Kind: "A100"}, Mem: "15G", Time: "2:00:00", Constraint: "ib"}},
		{name: "too many nodes", spec: JobSpec{Nodes: 4}, want: "--nodes=4: a job gets at most 3 nodes in partition main: give --partition=cloud, which can run the job, or ask for less", limits: true},
		{name: "the partition's own limit", spec: JobSpec{Nodes: 2, Partition: "large"}, want: "--nodes=2: a job gets at most 1 node in partition large: give one of the partitions that can run the job, main and cloud, or ask for less", limits: true},
		{name: "too long", spec: JobSpec{Nodes: 1, Time: "3:00:00"}, want: "--time=3:00:00: a job gets at most 02:00:00 in partition main: give one of", limits: true},
		{name: "memory", spec: JobSpec{Nodes: 1, Mem: "100G"}, want: "--mem=100G: a node has at most 16000 MB of memory in partition main: give one of the partitions that can run the job, large and cloud, or ask for less"},
		{name: "GPUs", spec: JobSpec{Nodes: 1, GPUs: GPUs{Count: 5}}, want: "--gpus-per-node=5: a node has at most 4 GPUs in partition main: give --partition=cloud"},
		{name: "a type", spec: JobSpec{Nodes: 1, GPUs: GPUs{Count: 1, Kind: "h100"}}, want: "--gpus-per-node=h100:1: a node has no h100 GPUs in partition main"},
		{name: "too few nodes with GPUs", spec: JobSpec{Nodes: 3, GPUs: GPUs{Count: 1}}, want: "--gpus-per-node=1: only 2 of 3 nodes have that in partition main"},
		{name: "ranks", spec: JobSpec{Nodes: 1, TasksPerNode: 65}, want: "--tasks-per-node=65: a node has at most 64 CPUs"},
		{name: "CPUs of ranks", spec: JobSpec{Nodes: 2, TasksPerNode: 4, CPUsPerTask: 4}, want: "--tasks-per-node=4 with --cpus-per-task=4: only 1 of 3 nodes have that"},
		{name: "a feature", spec: JobSpec{Nodes: 1, Constraint: "avx"}, want: "--constraint=avx: too few nodes have that feature; the features are ib in partition main"},
		{name: "an expression", spec: JobSpec{Nodes: 1, Constraint: "avx|ib"}},
		{name: "all of that", spec: JobSpec{Nodes: 1, TasksPerNode: 16, GPUs: GPUs{Count: 1}}, want: "--gpus-per-node=1, --tasks-per-node=16: only 0 of 3 nodes have all of that in partition main"},
		{name: "one of two partitions", spec: JobSpec{Nodes: 1, Mem: "100G", Partition: "main,large"}},
		{name: "none of two", spec: JobSpec{Nodes: 1, GPUs: GPUs{Count: 8}, Partition: "main,large"}, want: "a node has at most 4 GPUs in partition main; --gpus-per-node=8: a node has no GPUs in partition large: give"},
		{name: "no known nodes", spec: JobSpec{Nodes: 100, Partition: "cloud"}},
		{name: "endless", spec: JobSpec{Nodes: 1, Time: "UNLIMITED"}, want: "--time=UNLIMITED: a job gets at most 02:00:00 in partition main", limits: true},
		{name: "may be shorter", spec: JobSpec{Nodes: 1, Time: "3:00:00", Directives: []string{"--time-min=30"}}},
		{name: "memory of a job", spec: JobSpec{Nodes: 1, Partition: "open", Mem: "3G"}, want: "--mem=3G: a job gets at most 2000 MB on a node in partition open", limits: true},
		{name: "nodes that are powered down", spec: JobSpec{Nodes: 5, Partition: "open", GPUs: GPUs{Count: 8}}},
		{name: "more than those", spec: JobSpec{Nodes: 6, Partition: "open"}, want: "--nodes=6: a job gets at most 5 nodes in partition open", limits: true},
		{name: "a limit, and too little memory", spec: JobSpec{Nodes: 1, Partition: "main,open", Mem: "100G"}, want: "a node has at most 16000 MB of memory in partition main; --mem=100G: a job gets at most 2000 MB on a node in partition open"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, limits := testCluster().Misfit(tc.spec)
			if !strings.Contains(got, tc.want) || (tc.want == "") != (got == "") || limits != tc.limits {
				t.Errorf("%q, limits %t; want %q, %t", got, limits, tc.want, tc.limits)
			}
		})
	}
	for partition, want := range map[string]string{"gpu": "--partition=gpu: the cluster has main, large, cloud, closed and open", "gpu,main": "", "": ""} {
		if got := testCluster().Unknown(JobSpec{Partition: partition}); got != want {
			t.Errorf("%q: %q, want %q", partition, got, want)
		}
	}
	for partition, want := range map[string]string{"closed": "closed", "closed,main": "", "": ""} {
		if got := testCluster().Closed(JobSpec{Partition: partition}); got != want {
			t.Errorf("%q: %q, want %q", partition, got, want)
		}
	}
	if got, _ := (Cluster{}).Misfit(JobSpec{Nodes: 5}); got != "" {
		t.Errorf("a cluster of which nothing is known: %q", got)
	}
}

func TestMegabytes(t *testing.T) {
	for text, want := range map[string]int{"": 0, "4000": 4000, "64G": 65536, "2T": 2 << 20, "100K": 1, "1024m": 1024, "8GB": 8192} {
		if got := Megabytes(text); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}
