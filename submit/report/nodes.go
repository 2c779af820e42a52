package report

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"gonbatch/internal/plural"
)

// Nodes are the partitions of a cluster, with what is free there, and the user's own jobs.
type Nodes struct {
	Partitions []Partition `json:"partitions"`
	Jobs       []Usage     `json:"jobs"`
	// Limits are the cluster's limits for the user, in its own words; it may not tell.
	Limits []string `json:"limits,omitempty"`
}

// Partition is a partition, with its nodes by kind.
type Partition struct {
	Name    string `json:"name"`
	Default bool   `json:"default,omitempty"`
	Up      bool   `json:"up"`
	// MaxTime and MaxNodes are limits of a job; missing if there is none.
	MaxTime  string     `json:"max_time,omitempty"`
	MaxNodes int        `json:"max_nodes,omitempty"`
	Kinds    []NodeKind `json:"kinds"`
}

// NodeKind are the nodes of a partition that have the same hardware: for each node, its CPUs, its
// memory in MB, its GPUs by type ("" if the cluster doesn't tell it) and its features. Idle counts
// the nodes without jobs, and Down those that take none. The free CPUs and GPUs are those of all
// nodes together; FreeMemory is the most that one node has.
type NodeKind struct {
	Nodes      int            `json:"nodes"`
	Idle       int            `json:"idle"`
	Down       int            `json:"down"`
	CPUs       int            `json:"cpus"`
	FreeCPUs   int            `json:"free_cpus"`
	Memory     int            `json:"memory"`
	FreeMemory int            `json:"free_memory"`
	GPUs       map[string]int `json:"gpus,omitempty"`
	FreeGPUs   map[string]int `json:"free_gpus,omitempty"`
	Features   []string       `json:"features,omitempty"`
}

// Usage are the user's jobs in a state, such as "running".
type Usage struct {
	State string `json:"state"`
	Jobs  int    `json:"jobs"`
	Nodes int    `json:"nodes"`
	CPUs  int    `json:"cpus"`
}

// Text writes a table of the kinds of nodes, and the user's jobs. The default partition has a *.
func (a Nodes) Text(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "PARTITION\tTIME LIMIT\tNODES\tIDLE\tDOWN\tCPUS\tFREE\tMEMORY\tGPUS\tFREE\tFEATURES")
	for _, p := range a.Partitions {
		name := p.Name
		if p.Default {
			name += "*"
		}
		if !p.Up {
			name += " (closed)"
		}
		for _, k := range p.Kinds {
			fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%d\t%d\t%d\t%s\t%s\t%s\t%s\n", name, cmp.Or(p.MaxTime, "none"), k.Nodes, k.Idle, k.Down, k.CPUs, k.FreeCPUs,
				memory(k.Memory), dash(gpus(k.GPUs)), dash(gpus(k.FreeGPUs)), dash(strings.Join(k.Features, ",")))
		}
		if len(p.Kinds) == 0 {
			fmt.Fprintf(table, "%s\t%s\t0\n", name, cmp.Or(p.MaxTime, "none"))
		}
	}
	err := table.Flush()
	for _, u := range a.Jobs {
		if err == nil {
			_, err = fmt.Fprintf(w, "your jobs: %d %s (%s, %s)\n", u.Jobs, u.State, plural.Of(u.Nodes, "node"), plural.Of(u.CPUs, "CPU"))
		}
	}
	for _, limit := range a.Limits {
		if err == nil {
			_, err = fmt.Fprintf(w, "your limits: %s\n", limit)
		}
	}
	return err
}

// memory describes an amount of memory in MB.
func memory(mb int) string {
	if mb < 10<<10 {
		return fmt.Sprintf("%d MB", mb)
	}
	return fmt.Sprintf("%d GB", mb>>10)
}

// gpus describes numbers of GPUs by type.
func gpus(numbers map[string]int) string {
	var all []string
	for _, kind := range slices.Sorted(maps.Keys(numbers)) {
		all = append(all, strings.TrimPrefix(fmt.Sprintf("%s:%d", kind, numbers[kind]), ":"))
	}
	return strings.Join(all, ",")
}
