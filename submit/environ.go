package submit

import (
	"slices"
	"strings"

	"gonbatch/internal/cluster"
	"gonbatch/internal/rundir"
)

// Variables of SLURM's commands and of the ranks that they start.
var (
	// optionPrefixes begin the names of variables that set the options of SLURM's commands, and of
	// those that a job or a rank gets. The commands, and the job that one of them queues, take
	// these for their own.
	optionPrefixes = append([]string{
		"SLURM_", "SLURMD_", "SBATCH_", "SRUN_", "SALLOC_", "SACCT_", "SCANCEL_", "SCONTROL_", "SINFO_", "SQUEUE_", "SPRIO_", "SSTAT_",
		rundir.EnvUserPrefix,
	}, cluster.Prefixes...)
	// reachPrefixes begin the names of those by which the commands, or a site's scripts around
	// them, find and enter the cluster.
	reachPrefixes = []string{"SLURM_CONF", "SLURM_CLUSTERS", "SLURM_JWT", "SLURM_SACK_", "SLURM_ROOT", "SLURM_HOME", "SLURM_PREFIX"}
)

// CleanEnviron is an environment for the commands of SLURM and of MPI: environ without what would
// change their options, or would give what they start the variables of the job that this process
// runs in. What they need to reach the cluster stays.
func CleanEnviron(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return slices.Contains(cluster.Names, name) || begins(name, optionPrefixes) && !begins(name, reachPrefixes)
	})
}

func begins(name string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}
