package slurmtmpl

import (
	"errors"
	"fmt"
	"time"

	"gonbatch/submit"
)

// maxSignalLead is the most that sbatch's --signal takes.
const maxSignalLead = 65535 * time.Second

// Validate says everything that sbatch would refuse of a spec that JobSpec.Validate accepts, or
// that would make something else of the submission.
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
