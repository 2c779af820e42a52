package main

import (
	"fmt"
	"slices"
	"strings"

	"gonbatch/submit"
	"gonbatch/submit/slurm"
)

// checkSecrets refuses a job whose secrets are not in the environment that it gets.
func (a *app) checkSecrets(spec submit.JobSpec) error {
	for _, name := range spec.Secrets {
		isSet := slices.ContainsFunc(a.environ, func(v string) bool { return strings.HasPrefix(v, name+"=") })
		if !isSet {
			return usage("--secret %s: your shell exports no variable of that name; export %s=... first", name, name)
		}
	}
	return nil
}

// warnIgnored says which options of sbatch in the environment do not count for the job.
func (a *app) warnIgnored() {
	for _, ignored := range slurm.IgnoredOptions(a.environ) {
		instead := "give sbatch's option by --directive"
		if ignored.Option != "" {
			instead = "give " + ignored.Option
		}
		fmt.Fprintf(a.err, "submit: warning: %s is ignored: %s\n", ignored.Variable, instead)
	}
}

// warnCounting says which options of sbatch in the environment will count when a person queues the
// job from this shell.
func (a *app) warnCounting() {
	for _, ignored := range slurm.IgnoredOptions(a.environ) {
		name, _, _ := strings.Cut(ignored.Variable, "=")
		fmt.Fprintf(a.err, "submit: warning: sbatch will prefer %s to the job's own options: unset %s before you queue it\n", ignored.Variable, name)
	}
}
