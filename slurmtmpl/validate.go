package slurmtmpl

import (
	"errors"
	"fmt"
	"time"

	"gonbatch/submit"
)

// maxSignalLead is the maximum of sbatch's --signal.
const maxSignalLead = 65535 * time.Second

// Validate reports everything in a spec accepted by JobSpec.Validate that sbatch would refuse, and
// directives that submit refuses.
func Validate(spec submit.JobSpec) error {
	var errs []error
	for _, text := range spec.Directives {
		_, err := parseDirective(text)
		errs = append(errs, err)
	}
	if spec.SignalLead > maxSignalLead {
		errs = append(errs, fmt.Errorf("--signal-lead=%s: SLURM takes at most 18h", spec.SignalLead))
	}
	return errors.Join(errs...)
}
