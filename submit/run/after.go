package run

import (
	"context"
	"fmt"
	"maps"
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
			var part string
			if err == nil {
				part, err = rs.waitForRun(ctx, r, kind, scheduler)
			}
			if part != "" {
				waits = append(waits, part)
			}
		}
		if err != nil {
			return submit.UsageError{Err: fmt.Errorf("%s=%s: %w", option, word, err)}
		}
	}
	if len(waits) == 0 {
		return nil
	}
	if err := mayWait(*spec, "--after"); err != nil {
		return err
	}
	wait(spec, waits...)
	spec.SetPassed("kill-on-invalid-dep", "yes") // Otherwise it would wait forever for a job that has failed.
	return nil
}

// mayWait refuses a dependency to which an option can't add other jobs.
func mayWait(spec submit.JobSpec, option string) error {
	if given := spec.Passed["dependency"]; strings.Contains(given, "?") {
		return submit.Usagef("--dependency=%s: with %s, all of the parts count: leave out the ?, or %[2]s", given, option)
	}
	return nil
}

// wait makes a job wait for other jobs too.
func wait(spec *submit.JobSpec, waits ...string) {
	if given := spec.Passed["dependency"]; given != "" {
		waits = append(waits, given)
	}
	spec.Passed = maps.Clone(spec.Passed)
	spec.SetPassed("dependency", strings.Join(waits, ","))
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
