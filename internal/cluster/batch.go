package cluster

import (
	"slices"
	"strings"
)

// batchSystem describes a batch system by the prefixes of its variables.
type batchSystem struct {
	// name is the system's name, and id the variable with the id of a job.
	name, id string
	// job are the prefixes of the variables that it sets for a job and its ranks, and options those
	// of the variables that set its commands' options.
	job, options []string
	// reach are the prefixes of the variables through which the commands, or a site's scripts
	// around them, find and enter the cluster.
	reach []string
}

var batchSystems = []batchSystem{
	{
		name: "SLURM", id: "SLURM_JOB_ID", job: []string{"SLURM_", "SLURMD_", "SBATCH_", "SRUN_"},
		options: []string{"SALLOC_", "SACCT_", "SCANCEL_", "SCONTROL_", "SINFO_", "SQUEUE_", "SPRIO_", "SSTAT_"},
		reach:   []string{"SLURM_CONF", "SLURM_CLUSTERS", "SLURM_JWT", "SLURM_SACK_", "SLURM_ROOT", "SLURM_HOME", "SLURM_PREFIX"},
	},
	{name: "PBS", id: "PBS_JOBID", job: []string{"PBS_"}, reach: []string{"PBS_CONF_FILE", "PBS_DEFAULT", "PBS_EXEC", "PBS_HOME", "PBS_SERVER"}},
}

// cpusVariable is SLURM's variable for the CPUs of each process, and gpusVariables are those for
// its GPUs.
const cpusVariable = "SLURM_CPUS_PER_TASK"

var gpusVariables = []string{"SLURM_GPUS_ON_NODE", "SLURM_STEP_GPUS", "SLURM_JOB_GPUS"}

// stepVariable is the id of a step in a job of SLURM.
const stepVariable = "SLURM_STEP_ID"

// StepID returns the id of the step of SLURM that has started this process; "" if none has.
func StepID(getenv func(string) string) string { return getenv(stepVariable) }

// GPUs returns what the batch system says that it granted, such as "SLURM_GPUS_ON_NODE=2"; "" if it
// doesn't say.
func GPUs(getenv func(string) string) string {
	for _, name := range gpusVariables {
		if value := getenv(name); value != "" && value != "0" {
			return name + "=" + value
		}
	}
	return ""
}

// JobID returns the id of the batch system's job that a process belongs to; "" if there is none.
func JobID(getenv func(string) string) string {
	for _, b := range batchSystems {
		if id := getenv(b.id); id != "" {
			return id
		}
	}
	return ""
}

// Outside returns an environment for the commands of batch systems and of MPI: environ without the
// variables that would change the commands' options, or would make their processes look like part
// of this process's job. The variables that they need to reach the cluster stay.
func Outside(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return isLauncher(name) || slices.ContainsFunc(batchSystems, func(b batchSystem) bool { return b.inside(name) })
	})
}

// Alone returns an environment for a program that is no rank among others: environ without the
// variables by which Detect finds a launcher, and torchrun's. They may be those of a step around
// this process, or be left in the user's shell. Other variables of a job stay.
func Alone(environ []string) []string {
	torchrun := strings.Join(TorchrunVariables(0, 1, 0, ""), "\n")
	return slices.DeleteFunc(slices.Clone(environ), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return isLauncher(name) || strings.Contains("\n"+torchrun, "\n"+name+"=") ||
			slices.ContainsFunc(launchers, func(l launcherVariables) bool { return name == l.rank || name == l.with })
	})
}

// inside reports whether a variable belongs to a job, or to one call of a command.
func (b batchSystem) inside(name string) bool {
	return (begins(name, b.job) || begins(name, b.options)) && !begins(name, b.reach)
}

// Setter returns the name of the program that sets a variable from which a rank learns its place: a
// batch system, or "the MPI launcher". It returns "" for all other variables.
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
