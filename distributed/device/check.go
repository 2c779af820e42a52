package device

import (
	"errors"
	"fmt"
	"strings"

	"gonbatch/internal/plural"
	"gonbatch/internal/rundir"
)

// cuda is the platform of NVIDIA GPUs.
const cuda = "cuda"

// Check compares the facts of all ranks. It has the same result on every rank. A warning is about
// unused GPUs. The error has a line for each rank that can't compute.
func Check(ranks []Facts) (warnings []string, err error) {
	if err := samePlatform(ranks); err != nil {
		return nil, err
	}
	var errs []error
	used := map[string]Facts{}
	for _, f := range ranks {
		if f.Platform != cuda {
			warnings = append(warnings, f.unused()...)
			continue
		}
		names, err := f.use()
		if err != nil {
			errs = append(errs, err)
		}
		for _, name := range names {
			key := f.Host + " " + name
			if other, ok := used[key]; ok {
				errs = append(errs, fmt.Errorf("rank %d and %s use the same GPU %s: give each rank its own (--gpus-per-node as many as --tasks-per-node)", other.Rank, f.who(), name))
			}
			used[key] = f
		}
	}
	return warnings, errors.Join(errs...)
}

// use lists the GPUs that the rank will compute on: all visible ones if it is the only rank, else
// one.
func (f Facts) use() ([]string, error) {
	names, err := f.names()
	if err != nil || f.Size == 1 {
		return names, err
	}
	index, err := f.Pick()
	if err != nil {
		return nil, err
	}
	return names[index : index+1], nil
}

// samePlatform returns an error if some ranks use GPUs and others CPUs: they would wait for one
// another.
func samePlatform(ranks []Facts) error {
	for _, f := range ranks {
		if first := ranks[0]; f.Platform != first.Platform {
			return fmt.Errorf("%s computes on %s, but %s on %s%s: set %s (submit --platform) for all", first.who(), first.Platform, f.who(), f.Platform, reason(first, f), rundir.EnvPlatform)
		}
	}
	return nil
}

// reason explains why the rank that is not on GPUs isn't.
func reason(a, b Facts) string {
	if a.Platform == cuda {
		a = b
	}
	if a.Asked {
		return ""
	}
	if len(a.GPUs) == 0 {
		return fmt.Sprintf(" (%s: %s)", a.who(), a.whyNone())
	}
	return fmt.Sprintf(" (%s has GPUs, but no CUDA plugin)", a.who())
}

// unused returns a warning if there are GPUs, or the scheduler granted some, but the rank computes
// on the CPU without having been told to.
func (f Facts) unused() []string {
	switch {
	case f.Asked || f.Granted == "" && len(f.GPUs) == 0:
		return nil
	case len(f.GPUs) == 0:
		return []string{fmt.Sprintf("%s computes on the CPU, though the scheduler gave it GPUs (%s): %s", f.who(), f.Granted, f.whyNone())}
	case f.IsSet && strings.TrimSpace(f.Visible) == "":
		return []string{fmt.Sprintf("%s computes on the CPU: %s is empty, which hides its %s", f.who(), visibleVariable, plural.Of(len(f.GPUs), "GPU"))}
	}
	return []string{fmt.Sprintf("%s computes on the CPU, though it sees %s: the CUDA plugin is not installed; submit --platform cuda installs it", f.who(), plural.Of(len(f.GPUs), "GPU"))}
}
