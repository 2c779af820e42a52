package slurm

import (
	"slices"
	"strings"
)

// Variables of SLURM's commands and of the ranks that they start.
var (
	// optionPrefixes begin the names of variables that set the options of SLURM's commands, and of those that a job or a rank gets.
	// The commands, and the job that one of them queues, take these for their own.
	optionPrefixes = []string{
		"SLURM_", "SLURMD_", "SBATCH_", "SRUN_", "SALLOC_", "SACCT_", "SCANCEL_", "SCONTROL_", "SINFO_", "SQUEUE_", "SPRIO_", "SSTAT_",
		"PMI_", "PMIX_SERVER_", "PMIX_RANK", "PMIX_NAMESPACE", "OMPI_COMM_WORLD_", "GONBATCH_ENV_",
	}
	// reachPrefixes begin the names of those by which the commands find and enter the cluster.
	reachPrefixes = []string{"SLURM_CONF", "SLURM_CLUSTERS", "SLURM_JWT", "SLURM_SACK_"}
)

// Environ is an environment for SLURM's commands: environ without what would change their options, or would give the job that they
// queue the variables of the job that this process runs in. What they need to reach the cluster stays.
func Environ(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return begins(name, optionPrefixes) && !begins(name, reachPrefixes)
	})
}

func begins(name string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// sbatchPrefix begins the names of variables by which sbatch takes options.
const sbatchPrefix = "SBATCH_"

// differentNames maps sbatch's variables to submit's options where their names differ.
var differentNames = map[string]string{"TIMELIMIT": "time", "JOB_NAME": "name", "CPUS_PER_TASK": "cpus-per-task", "GPUS_PER_NODE": "gpus-per-node"}

// sameNames are those that have submit's own names.
var sameNames = []string{"account", "constraint", "partition", "qos", "mem"}

// Ignored is a variable that sbatch would read as an option, and that Environ drops.
type Ignored struct {
	// Variable is NAME=VALUE.
	Variable string
	// Option is the option of submit that says the same, with its value: "--time=5". It is "" where only --directive does.
	Option string
}

// IgnoredOptions lists sbatch's options in environ, sorted.
func IgnoredOptions(environ []string) []Ignored {
	var list []Ignored
	for _, variable := range environ {
		name, value, _ := strings.Cut(variable, "=")
		key, found := strings.CutPrefix(name, sbatchPrefix)
		if !found || value == "" {
			continue
		}
		ignored := Ignored{Variable: variable}
		if option := differentNames[key]; option != "" {
			ignored.Option = "--" + option + "=" + value
		} else if slices.Contains(sameNames, strings.ToLower(key)) {
			ignored.Option = "--" + strings.ToLower(key) + "=" + value
		}
		list = append(list, ignored)
	}
	slices.SortFunc(list, func(a, b Ignored) int { return strings.Compare(a.Variable, b.Variable) })
	return list
}
