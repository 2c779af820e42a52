package main

import (
	"github.com/spf13/cobra"

	"gonbatch/submit/report"
)

func newNodesCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "nodes",
		Short: "Show the cluster's partitions, and what is free there",
		Long: `nodes shows the cluster's partitions with their limits, their nodes by kind, how many of these are
idle and down, and how many CPUs and GPUs of each type are free now. FREE counts all nodes of a kind
together; CPUS, MEMORY and GPUS are those of one node. It also shows your own jobs, and your limits
where the cluster tells them.`,
		Args: cobra.NoArgs,
	}
	return reporting(a, cmd, func(cmd *cobra.Command, _ []string) (report.Report, error) {
		return a.runs(cmd, "").Nodes(cmd.Context())
	})
}
