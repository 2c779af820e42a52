package slurm

import (
	"context"
	"regexp"
	"strconv"

	"gonbatch/internal/plural"
	"gonbatch/submit"
)

// partition holds a partition's limits for a job; 0 means no limit or unknown.
type partition struct {
	name     string
	nodes    int
	time     string
	standard bool
}

// partitionField matches a relevant field of scontrol show partition.
var partitionField = regexp.MustCompile(`\b(PartitionName|Default|MaxNodes|MaxTime|TotalNodes)=(\S+)`)

// parsePartitions parses the output of scontrol show partition.
func parsePartitions(text string) (all []partition) {
	for _, field := range partitionField.FindAllStringSubmatch(text, -1) {
		if field[1] == "PartitionName" {
			all = append(all, partition{name: field[2]})
		}
		if len(all) == 0 {
			continue
		}
		last := &all[len(all)-1]
		switch value := field[2]; field[1] {
		case "Default":
			last.standard = value == "YES"
		case "MaxTime":
			last.time = value
		case "MaxNodes", "TotalNodes":
			if n, err := strconv.Atoi(value); err == nil && (last.nodes == 0 || n < last.nodes) {
				last.nodes = n
			}
		}
	}
	return all
}

// warnPartition warns about a job that asks for more nodes or time than its partition allows. SLURM
// accepts such a job, and never starts it. If SLURM doesn't answer, there is no warning.
func (s *Scheduler) warnPartition(ctx context.Context, spec submit.JobSpec) {
	if spec.Nodes == 1 && spec.Time == "" {
		return
	}
	out, err := s.runner.Run(ctx, "scontrol", "show", "partition")
	if err != nil {
		return
	}
	for _, p := range parsePartitions(string(out)) {
		if spec.Partition == "" && !p.standard || spec.Partition != "" && spec.Partition != p.name {
			continue
		}
		if p.nodes > 0 && spec.Nodes > p.nodes {
			s.shell.Warn("--nodes=%d: a job in partition %s gets at most %s, so this one would wait forever; give fewer, or another --partition", spec.Nodes, p.name, plural.Of(p.nodes, "node"))
		}
		if limit := submit.TimeLimit(p.time); limit > 0 && submit.TimeLimit(spec.Time) > limit {
			s.shell.Warn("--time=%s: a job in partition %s gets at most %s, so this one would wait forever; give less, or another --partition", spec.Time, p.name, p.time)
		}
	}
}
