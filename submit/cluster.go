package submit

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"gonbatch/internal/plural"
)

// Planner is a Scheduler that knows its cluster before a job is queued.
type Planner interface {
	// Cluster returns the cluster's partitions and nodes as they are now.
	Cluster(ctx context.Context) (Cluster, error)
	// Usage returns the user's own jobs by state, and the cluster's limits for the user in its own
	// words, if it tells them.
	Usage(ctx context.Context) ([]Usage, []string, error)
	// Expect returns when a prepared job would start if it were queued now. If it can't start as
	// things are, the error is a Refusal.
	Expect(ctx context.Context, spec JobSpec) (Expectation, error)
}

// Refusal is the scheduler's reason why a job can't start. Unless it is final, the scheduler may
// queue the job nevertheless: a node that is down now may come back.
type Refusal struct {
	Reason string
	Final  bool
}

// Error returns the reason.
func (r Refusal) Error() string { return r.Reason }

// Expectation is when and where a job is expected to start.
type Expectation struct {
	Start            time.Time
	Nodes, Partition string
}

// Cluster are the partitions and nodes of a cluster.
type Cluster struct {
	Partitions []Partition
	Nodes      []Node
}

// Usage are the user's jobs in a state, such as "running".
type Usage struct {
	State             string
	Jobs, Nodes, CPUs int
}

// Partition is a queue with limits; a limit of 0 or "" is none.
type Partition struct {
	Name    string
	Default bool
	Up      bool
	// Restricted is set if not everybody may use it.
	Restricted bool
	// Nodes is the number of its nodes, of which the cluster may not show all. MaxMemory is that of
	// a job on each node, in MB.
	Nodes, MaxNodes, MaxMemory int
	MaxTime                    string
}

// Node is a node of a cluster. Memory is in MB. GPUs are the numbers of GPUs by type, which is ""
// if the cluster doesn't tell it.
type Node struct {
	Name       string
	Partitions []string
	// Usable is set if the node is up, and takes jobs.
	Usable             bool
	CPUs, FreeCPUs     int
	Memory, FreeMemory int
	GPUs, FreeGPUs     map[string]int
	Features           []string
}

// In returns the nodes of a partition.
func (c Cluster) In(partition string) (nodes []Node) {
	for _, n := range c.Nodes {
		if slices.Contains(n.Partitions, partition) {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// Unknown explains that the cluster has no partition of a job's; "" if it has one.
func (c Cluster) Unknown(spec JobSpec) string {
	if spec.Partition == "" || len(c.chosen(spec)) > 0 || len(c.Partitions) == 0 {
		return ""
	}
	names := make([]string, len(c.Partitions))
	for i, p := range c.Partitions {
		names[i] = p.Name
	}
	return fmt.Sprintf("--partition=%s: the cluster has %s", spec.Partition, plural.And(names))
}

// chosen returns the partitions that a job may go to.
func (c Cluster) chosen(spec JobSpec) (list []Partition) {
	names := strings.Split(spec.Partition, ",")
	for _, p := range c.Partitions {
		if spec.Partition == "" && p.Default || slices.Contains(names, p.Name) {
			list = append(list, p)
		}
	}
	return list
}

// Misfit explains why none of a job's partitions can ever run it, and names those that can. It is
// "" if one can, or if that isn't known: what counts are numbers of nodes, CPUs and GPUs, memory, a
// feature and time. limits reports whether the partitions' limits are the reason, which the nodes
// don't change.
func (c Cluster) Misfit(spec JobSpec) (reason string, limits bool) {
	var reasons []string
	limits = true
	for _, p := range c.chosen(spec) {
		reason, limit := c.misfit(p, spec)
		if reason == "" {
			return "", false
		}
		limits = limits && limit
		reasons = append(reasons, fmt.Sprintf("%s in partition %s", reason, p.Name))
	}
	if len(reasons) == 0 {
		return "", false
	}
	var others []string
	for _, p := range c.Partitions {
		if reason, _ := c.misfit(p, spec); p.Up && !p.Restricted && reason == "" {
			others = append(others, p.Name)
		}
	}
	text := strings.Join(reasons, "; ")
	switch len(others) {
	case 0:
		return text + ", and no other partition can run the job either: ask for less", limits
	case 1:
		return fmt.Sprintf("%s: give --partition=%s, which can run the job, or ask for less", text, others[0]), limits
	}
	return fmt.Sprintf("%s: give one of the partitions that can run the job, %s, or ask for less", text, plural.And(others)), limits
}

// Closed returns the name of a job's partition if it has only one, and that takes no jobs now.
func (c Cluster) Closed(spec JobSpec) string {
	if chosen := c.chosen(spec); len(chosen) == 1 && !chosen[0].Up {
		return chosen[0].Name
	}
	return ""
}

// need is a demand of a job on each of its nodes.
type need struct {
	option string
	met    func(Node) bool
	// most describes what the best of the nodes has.
	most func([]Node) string
}

// misfit explains why a partition can never run a job, and reports whether that is its own limit.
func (c Cluster) misfit(p Partition, spec JobSpec) (reason string, limit bool) {
	nodes := c.In(p.Name)
	most := max(len(nodes), p.Nodes)
	if p.MaxNodes > 0 {
		most = min(most, p.MaxNodes)
	}
	longest, asked := TimeLimit(p.MaxTime), TimeLimit(spec.Time)
	endless := spec.Time != "" && asked == 0
	shortened := slices.ContainsFunc(spec.Directives, func(d string) bool { return strings.HasPrefix(d, "--time-min") })
	switch {
	case most == 0:
		return "", false // They may be created when they are needed.
	case spec.Nodes > most:
		return fmt.Sprintf("--nodes=%d: a job gets at most %s", spec.Nodes, plural.Of(most, "node")), true
	case longest > 0 && (asked > longest || endless) && !shortened:
		return fmt.Sprintf("--time=%s: a job gets at most %s", spec.Time, p.MaxTime), true
	case p.MaxMemory > 0 && Megabytes(spec.Mem) > p.MaxMemory:
		return fmt.Sprintf("--mem=%s: a job gets at most %d MB on a node", spec.Mem, p.MaxMemory), true
	case len(nodes) < p.Nodes:
		return "", false // The others, which are powered down, aren't known.
	}
	all := needs(spec)
	for _, n := range all {
		if count(nodes, n.met) < spec.Nodes {
			return n.option + ": " + n.most(nodes), false
		}
	}
	if together := count(nodes, func(node Node) bool {
		return !slices.ContainsFunc(all, func(n need) bool { return !n.met(node) })
	}); together < spec.Nodes {
		var options []string
		for _, n := range all {
			options = append(options, n.option)
		}
		return fmt.Sprintf("%s: only %d of %s have all of that", strings.Join(options, ", "), together, plural.Of(len(nodes), "node")), false
	}
	return "", false
}

func count(nodes []Node, met func(Node) bool) (n int) {
	for _, node := range nodes {
		if met(node) {
			n++
		}
	}
	return n
}

// needs returns what a job asks of each node.
func needs(spec JobSpec) (all []need) {
	number := func(option string, least int, unit string, of func(Node) int) {
		met := func(n Node) bool { return of(n) >= least }
		all = append(all, need{option, met, func(nodes []Node) string {
			most := 0
			for _, n := range nodes {
				most = max(most, of(n))
			}
			if most >= least {
				return fmt.Sprintf("only %d of %s have that", count(nodes, met), plural.Of(len(nodes), "node"))
			}
			return strings.Replace(fmt.Sprintf("a node has at most %d %s", most, unit), "at most 0", "no", 1)
		}})
	}
	if memory := Megabytes(spec.Mem); memory > 0 {
		number("--mem="+spec.Mem, memory, "MB of memory", func(n Node) int { return n.Memory })
	}
	if gpus := spec.GPUs; gpus.Count > 0 {
		unit := strings.TrimSpace(gpus.Kind + " GPUs")
		number("--gpus-per-node="+gpus.String(), gpus.Count, unit, func(n Node) int { return gpusOf(n.GPUs, gpus.Kind) })
	}
	cpus := spec.TasksPerNode * max(1, spec.CPUsPerTask)
	option := fmt.Sprintf("--tasks-per-node=%d", spec.TasksPerNode)
	if spec.CPUsPerTask > 1 {
		option += fmt.Sprintf(" with --cpus-per-task=%d", spec.CPUsPerTask)
	}
	number(option, cpus, "CPUs", func(n Node) int { return n.CPUs })
	if cellName.MatchString(spec.Constraint) { // Not an expression.
		all = append(all, need{"--constraint=" + spec.Constraint, func(n Node) bool { return slices.Contains(n.Features, spec.Constraint) }, func(nodes []Node) string {
			var known []string
			for _, n := range nodes {
				known = append(known, n.Features...)
			}
			slices.Sort(known)
			if known = slices.Compact(known); len(known) == 0 {
				return "the nodes have no features"
			}
			return "too few nodes have that feature; the features are " + strings.Join(known, ", ")
		}})
	}
	return all
}

// gpusOf returns the number of GPUs of a type; "" is any.
func gpusOf(gpus map[string]int, kind string) (n int) {
	for k, number := range gpus {
		if kind == "" || strings.EqualFold(k, kind) {
			n += number
		}
	}
	return n
}

// Megabytes returns an amount of memory of JobSpec.Mem in MB; 0 if it is not known.
func Megabytes(mem string) int {
	text := strings.TrimRight(strings.ToUpper(mem), "B")
	digits := strings.TrimRight(text, "KMGT")
	n := number(digits)
	switch strings.TrimPrefix(text, digits) {
	case "K":
		return (n + 1023) / 1024
	case "G":
		return n << 10
	case "T":
		return n << 20
	}
	return n
}
