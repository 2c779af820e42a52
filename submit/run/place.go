package run

import (
	"cmp"
	"path/filepath"
	"strings"

	"gonbatch/internal/nbformat"
	"gonbatch/internal/rundir"
	"gonbatch/submit"
	"gonbatch/submit/export/nbcell"
)

// Locate adds the place in the notebook where a rank failed to an error: the first in the trace of
// a failure, else the last in the lines. It also adds the line of the main cell that led there, if
// it is another one. The place stays "" if the lines name none, or the notebook cannot be read.
func Locate(e *submit.JobError) {
	first, last := failurePlaces(e.Trace)
	e.Place = describePlace(e.Job.Dir, first)
	if caller := describePlace(e.Job.Dir, last); first != last && caller != "" {
		e.Place += "\ncalled from " + caller
	}
}

// failurePlaces returns the first and the last place in the trace of the goroutine that failed.
// Without such a trace it returns the places in the last lines that have any.
func failurePlaces(trace []string) (first, last string) {
	for i, line := range trace {
		if submit.GoFailure(trace[i:]) != "" {
			if first, last = tracePlaces(trace[i:]); first != "" {
				return first, last
			}
		}
		if found := nbformat.Places(line); len(found) > 0 {
			last = found[len(found)-1]
			if !strings.HasPrefix(line, "\t") || first == "" {
				first = last // The line of log.Fatal is followed by those that led to it.
			}
		}
	}
	return first, last
}

// tracePlaces returns the first and the last place in a trace, up to the end of its first
// goroutine.
func tracePlaces(trace []string) (first, last string) {
	inGoroutine := false
	for _, line := range trace {
		if inGoroutine && line == "" {
			break
		}
		inGoroutine = inGoroutine || strings.HasPrefix(line, "goroutine ")
		if found := nbformat.Places(line); len(found) > 0 {
			first, last = cmp.Or(first, found[0]), found[len(found)-1]
		}
	}
	return first, last
}

func describePlace(dir rundir.Dir, at string) string {
	if at == "" {
		return ""
	}
	nb, err := nbformat.Read(dir.Notebook())
	if err != nil {
		return ""
	}
	m, err := rundir.ReadManifest(dir)
	if err != nil {
		return ""
	}
	return nbcell.DescribePosition(nb, filepath.Base(m.Notebook.Path), at)
}
