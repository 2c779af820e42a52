package run

import (
	"context"
	"fmt"
	"strings"

	"gonbatch/submit"
)

// After are runs, or sweeps, that a job waits for: until they have completed, or until they have
// ended.
type After struct {
	Completed, Ended []string
}

// WaitFor makes a job wait for other runs. A run that has ended needs no wait; one that has failed
// is an error if the job needs its success.
func (rs *Runs) WaitFor(ctx context.Context, after After, scheduler submit.Scheduler, spec *submit.JobSpec) error {
	var waits []string
	for i, word := range append(after.Completed[:len(after.Completed):len(after.Completed)], after.Ended...) {
		option, kind := "--after", "afterok"
		if i >= len(after.Completed) {
			option, kind = "--after-any", "afterany"
		}
		all, err := rs.FindAll(word)
		for _, r := range all {
			var wait string
			if err == nil {
				wait, err = rs.waitForRun(ctx, r, kind, scheduler)
			}
			if wait != "" {
				waits = append(waits, wait)
			}
		}
		if err != nil {
			return submit.UsageError{Err: fmt.Errorf("%s=%s: %w", option, word, err)}
		}
	}
	if len(waits) == 0 {
		return nil
	}
	if given := spec.Passed["dependency"]; strings.Contains(given, "?") {
		return submit.Usagef("--dependency=%s: with --after, all of the parts count: leave out the ?, or --after", given)
	} else if given != "" {
		waits = append(waits, given)
	}
	spec.SetPassed("dependency", strings.Join(waits, ","))
	spec.SetPassed("kill-on-invalid-dep", "yes") // Otherwise it would wait forever for a job that has failed.
	return nil
}

// waitForRun returns the part of a dependency for a run; "" if there is nothing to wait for.
func (rs *Runs) waitForRun(ctx context.Context, r Run, kind string, scheduler submit.Scheduler) (string, error) {
	r, status, err := rs.look(ctx, r, nil)
	switch {
	case err != nil:
		return "", err
	case status.State == submit.Completed, kind == "afterany" && status.State.Ended():
		return "", nil
	case status.State.Ended():
		return "", fmt.Errorf("run %s has ended: %s; resume it first, or give --after-any", r.Dir.Name(), status)
	case r.Scheduler.Name() != scheduler.Name() || r.Manifest.JobID == "":
		return "", fmt.Errorf("run %s has no job that this one could wait for", r.Dir.Name())
	}
	return kind + ":" + r.Manifest.JobID, nil
}
