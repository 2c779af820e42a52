package run

import (
	"context"
	"fmt"
	"strings"

	"gonbatch/submit"
)

// After are runs that a job waits for: until they have completed, or until they have ended.
type After struct {
	Completed, Ended []string
}

// waitFor makes a job wait for other runs. A run that has ended needs no wait; one that has failed
// is an error if the job needs its success.
func (rs *Runs) waitFor(ctx context.Context, after After, scheduler submit.Scheduler, spec *submit.JobSpec) error {
	var waits []string
	for i, word := range append(after.Completed[:len(after.Completed):len(after.Completed)], after.Ended...) {
		option, kind := "--after", "afterok"
		if i >= len(after.Completed) {
			option, kind = "--after-any", "afterany"
		}
		r, err := rs.FindWhole(word)
		if err != nil {
			return fmt.Errorf("%s=%s: %w", option, word, err)
		}
		r, status, err := rs.look(ctx, r, nil)
		switch {
		case err != nil:
			return fmt.Errorf("%s=%s: %w", option, word, err)
		case status.State == submit.Completed, kind == "afterany" && status.State.Ended():
			continue
		case status.State.Ended():
			return submit.Usagef("%s=%s: run %s has ended: %s; resume it first, or give --after-any", option, word, r.Dir.Name(), status)
		case !r.taken() || r.Scheduler.Name() != scheduler.Name() || r.Manifest.JobID == "":
			return submit.Usagef("%s=%s: run %s has no job that this one could wait for", option, word, r.Dir.Name())
		}
		waits = append(waits, kind+":"+r.Manifest.JobID)
	}
	if len(waits) == 0 {
		return nil
	}
	if given := spec.Passed["dependency"]; given != "" {
		waits = append(waits, given)
	}
	spec.SetPassed("dependency", strings.Join(waits, ","))
	spec.SetPassed("kill-on-invalid-dep", "yes") // Otherwise it would wait forever for a job that has failed.
	return nil
}
