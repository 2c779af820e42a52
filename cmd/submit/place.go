package main

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"gonbatch/submit"
)

// clusterOnly marks flags that have no effect on a local run, and machineOnly flags that have no
// effect on a run on a cluster. The command line must not set them for such a run. A configuration
// file may, because it is for both.
const (
	clusterOnly = "gonbatch_cluster_only"
	machineOnly = "gonbatch_machine_only"
)

// misplaced refuses flags of the command line that have no effect on the run's scheduler.
func misplaced(flags *pflag.FlagSet, batch bool) error {
	key := clusterOnly
	if batch {
		key = machineOnly
	}
	var names []string
	flags.Visit(func(f *pflag.Flag) {
		if _, marked := f.Annotations[key]; marked {
			names = append(names, "--"+f.Name)
		}
	})
	list := strings.Join(names, ", ")
	switch {
	case len(names) == 0:
		return nil
	case batch:
		return submit.Usagef("%s does nothing on a cluster, only with --local; give --nodes and --tasks-per-node", list)
	case slices.Contains(names, "--nodes") || slices.Contains(names, "--tasks-per-node"):
		return submit.Usagef("%s: only for a cluster, and this run is on one machine (--local); give --tasks for the number of ranks", list)
	}
	return submit.Usagef("%s: only for a cluster, and does nothing for a run on this machine (--local); leave it out", list)
}
