package cluster

import (
	"slices"
	"strings"
)

// batchSystem is what a batch system's variables begin with.
type batchSystem struct {
	name string
	// job are the prefixes of what it sets for a job and its ranks, and options those of other
	// variables that set the options of its commands.
	job, options []string
	// reach are the prefixes by which the commands, or a site's scripts around them, find and enter
	// the cluster.
	reach []string
}

var batchSystems = []batchSystem{
	{
		name: "SLURM", job: []string{"SLURM_", "SLURMD_", "SBATCH_", "SRUN_"},
		options: []string{"SALLOC_", "SACCT_", "SCANCEL_", "SCONTROL_", "SINFO_", "SQUEUE_", "SPRIO_", "SSTAT_"},
		reach:   []string{"SLURM_CONF", "SLURM_CLUSTERS", "SLURM_JWT", "SLURM_SACK_", "SLURM_ROOT", "SLURM_HOME", "SLURM_PREFIX"},
	},
	{name: "PBS", job: []string{"PBS_"}, reach: []string{"PBS_CONF_FILE", "PBS_DEFAULT", "PBS_EXEC", "PBS_HOME", "PBS_SERVER"}},
}

// Outside is an environment for the commands of batch systems and of MPI: environ without what
// would change their options, or would give what they start the variables of the job that this
// process runs in. What they need to reach the cluster stays.
func Outside(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return isLauncher(name) || slices.ContainsFunc(batchSystems, func(b batchSystem) bool { return b.inside(name) })
	})
}

// inside reports whether a variable belongs to a job, or to one call of a command.
func (b batchSystem) inside(name string) bool {
	return (begins(name, b.job) || begins(name, b.options)) && !begins(name, b.reach)
}

// Setter names what sets a variable by which a rank learns its place: a batch system, or the MPI
// launcher. It is "" for all other variables.
func Setter(name string) string {
	for _, b := range batchSystems {
		if begins(name, b.job) {
			return b.name
		}
	}
	if isLauncher(name) {
		return "the MPI launcher"
	}
	return ""
}

func isLauncher(name string) bool { return slices.Contains(Names, name) || begins(name, Prefixes) }

func begins(name string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}
