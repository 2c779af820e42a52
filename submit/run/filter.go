package run

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"gonbatch/internal/rundir"
	"gonbatch/submit"
	"gonbatch/submit/report"
)

// Filter picks runs for a list; what is empty picks all.
type Filter struct {
	// States are the words of a report's State, "ended" or "active", with commas between them.
	States []string
	// Since is the age of the oldest run; 0 for all.
	Since time.Duration
	// Notebook is a path or a file name, with or without its ending.
	Notebook string
	// Name is a part of the run's name.
	Name string
	// Sweep is the name of a sweep.
	Sweep string
	// Everywhere also picks runs in the other folders in which the user has submitted.
	Everywhere bool
	// Used adds what each run has used.
	Used bool
	// Params are NAME=VALUE of parameters and flags. 0.001 is 1e-3.
	Params []string
}

// empty reports whether the filter picks all runs.
func (f Filter) empty() bool {
	return len(f.States)+len(f.Params) == 0 && f.Since == 0 && f.Notebook+f.Name+f.Sweep == ""
}

// states are the words that Filter.States may have.
var states = []string{
	"active", "ended", report.Staged, submit.Unknown.String(), string(submit.Pending), string(submit.Running), string(submit.Suspended), string(submit.Completed),
	string(submit.Failed), string(submit.Stopped), string(submit.Cancelled), string(submit.TimedOut), string(submit.OutOfMemory), string(submit.NodeFailed), string(submit.Preempted), string(submit.Lost),
}

// Check refuses words that no run can match.
func (f Filter) Check() error {
	for _, s := range f.words() {
		if !slices.Contains(states, s) {
			return submit.Usagef("--state=%q: give some of %s", s, strings.Join(states, ", "))
		}
	}
	for _, p := range f.Params {
		if !strings.Contains(p, "=") {
			return submit.Usagef("--param=%q: give NAME=VALUE", p)
		}
	}
	return nil
}

// words are the states; "timed-out" is "timed out".
func (f Filter) words() (all []string) {
	for _, list := range f.States {
		for s := range strings.SplitSeq(list, ",") {
			all = append(all, strings.NewReplacer("-", " ", "_", " ").Replace(strings.ToLower(s)))
		}
	}
	return all
}

// picksManifest decides by what the manifest has.
func (f Filter) picksManifest(m rundir.Manifest, now time.Time) bool {
	path := m.Notebook.Path
	base := filepath.Base(path)
	return (f.Since == 0 || now.Sub(m.Created) <= f.Since) &&
		(f.Notebook == "" || slices.Contains([]string{path, base, strings.TrimSuffix(base, filepath.Ext(base))}, f.Notebook) || samePath(f.Notebook, path)) &&
		strings.Contains(m.Name, f.Name) && (f.Sweep == "" || SweepOf(m) == f.Sweep) &&
		!slices.ContainsFunc(f.Params, func(p string) bool {
			name, want, _ := strings.Cut(p, "=")
			return !hasValue(m, name, want)
		})
}

// hasValue reports whether a run's parameter or flag has a value.
func hasValue(m rundir.Manifest, name, want string) bool {
	got, ok := m.Parameters[name]
	if !ok {
		got, ok = m.Flags[name]
	}
	return ok && sameValue(got, want)
}

func samePath(a, b string) bool {
	abs, err := filepath.Abs(a)
	return err == nil && abs == b
}

// sameValue compares values of a parameter as text, or as numbers.
func sameValue(a, b string) bool {
	if a == b {
		return true
	}
	x, err := strconv.ParseFloat(a, 64)
	y, otherErr := strconv.ParseFloat(b, 64)
	return err == nil && otherErr == nil && x == y
}

// picksState decides by the run's state. It picks a run whose state can't be found.
func (f Filter) picksState(r report.Run) bool {
	return len(f.States) == 0 || r.Error != "" || slices.ContainsFunc(f.words(), func(s string) bool {
		return s == r.State || s == "ended" && r.Ended || s == "active" && !r.Ended && r.State != report.Staged && r.State != submit.Unknown.String()
	})
}

// ParseAge returns the duration of a text such as 7d, 12h or 2d12h.
func ParseAge(text string) (time.Duration, error) {
	limit, err := submit.ParseTime(text)
	if _, plain := strconv.Atoi(text); plain == nil || err != nil || submit.TimeLimit(limit) == 0 {
		return 0, fmt.Errorf("%q is not an age: give 7d, 12h or 2d12h", text)
	}
	return submit.TimeLimit(limit), nil
}
