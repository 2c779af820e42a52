package slurm

import (
	"slices"
	"strings"

	"gonbatch/submit"
)

// sbatchPrefix begins the names of variables that sbatch reads as options.
const sbatchPrefix = "SBATCH_"

// differentNames maps sbatch's variables to submit's options if their names differ.
var differentNames = map[string]string{"TIMELIMIT": "time", "JOB_NAME": "name", "CPUS_PER_TASK": "cpus-per-task", "GPUS_PER_NODE": "gpus-per-node", "GRES": "gpus-per-node", "GPUS": "gpus", "MEM_PER_NODE": "mem"}

// sameNames are the variables with the same names as submit's options, beside those that it passes
// on.
var sameNames = []string{"account", "constraint", "partition", "qos", "mem"}

// ignoredOption is a variable that sbatch would read as an option, and that submit.CleanEnviron
// drops.
type ignoredOption struct {
	// Variable is NAME=VALUE.
	Variable string
	// Option is the equivalent option of submit with its value, such as "--time=5"; "" if only
	// --directive can set it.
	Option string
}

// ignoredOptions lists sbatch's options in environ, sorted.
func ignoredOptions(environ []string) []ignoredOption {
	var list []ignoredOption
	for _, variable := range environ {
		name, value, _ := strings.Cut(variable, "=")
		key, found := strings.CutPrefix(name, sbatchPrefix)
		if !found || value == "" {
			continue
		}
		ignored := ignoredOption{Variable: variable}
		same := strings.ReplaceAll(strings.ToLower(key), "_", "-")
		if option := differentNames[key]; option != "" {
			ignored.Option = "--" + option + "=" + value
		} else if slices.Contains(sameNames, same) || submit.IsPassed(same) {
			ignored.Option = "--" + same + "=" + value
		}
		list = append(list, ignored)
	}
	slices.SortFunc(list, func(a, b ignoredOption) int { return strings.Compare(a.Variable, b.Variable) })
	return list
}
