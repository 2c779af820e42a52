package run

import (
	"context"
	"maps"
	"slices"

	"gonbatch/submit"
	"gonbatch/submit/report"
)

// Nodes reports on the cluster of the first scheduler that has one.
func (rs *Runs) Nodes(ctx context.Context) (all report.Nodes, err error) {
	for _, s := range rs.Schedulers {
		planner, ok := s.(submit.Planner)
		if !ok {
			continue
		}
		cluster, err := planner.Cluster(ctx)
		if err != nil {
			return all, err
		}
		jobs, limits, err := planner.Usage(ctx)
		return nodesOf(cluster, jobs, limits), err
	}
	return all, submit.Usagef("no scheduler here has nodes")
}

// nodesOf returns a cluster's report, with the user's jobs and limits.
func nodesOf(c submit.Cluster, jobs []submit.Usage, limits []string) report.Nodes {
	all := report.Nodes{Jobs: []report.Usage{}, Limits: limits}
	for _, u := range jobs {
		all.Jobs = append(all.Jobs, report.Usage(u))
	}
	for _, p := range c.Partitions {
		part := report.Partition{Name: p.Name, Default: p.Default, Up: p.Up, MaxTime: p.MaxTime, MaxNodes: p.MaxNodes}
		for _, n := range c.In(p.Name) {
			add(&part, n)
		}
		all.Partitions = append(all.Partitions, part)
	}
	return all
}

// add counts a node of a partition.
func add(p *report.Partition, n submit.Node) {
	at := slices.IndexFunc(p.Kinds, func(k report.NodeKind) bool {
		return k.CPUs == n.CPUs && k.Memory == n.Memory && maps.Equal(k.GPUs, n.GPUs) && slices.Equal(k.Features, n.Features)
	})
	if at < 0 {
		at = len(p.Kinds)
		p.Kinds = append(p.Kinds, report.NodeKind{CPUs: n.CPUs, Memory: n.Memory, GPUs: n.GPUs, FreeGPUs: map[string]int{}, Features: n.Features})
	}
	k := &p.Kinds[at]
	k.Nodes++
	if !n.Usable {
		k.Down++
		return
	}
	if n.FreeCPUs == n.CPUs {
		k.Idle++
	}
	k.FreeCPUs += n.FreeCPUs
	k.FreeMemory = max(k.FreeMemory, n.FreeMemory)
	for kind, number := range n.FreeGPUs {
		k.FreeGPUs[kind] += number
	}
}
