package run

import (
	"gonbatch/internal/nbformat"
	"gonbatch/internal/rundir"
	"gonbatch/submit"
	"gonbatch/submit/export"
)

// Locate adds to an error the place in the notebook where a rank failed: the first that the trace
// of a failure names, else the last one in the lines. It stays "" where they name none, or the
// notebook cannot be read.
func Locate(e *submit.JobError) {
	at := ""
	for i, line := range e.Trace {
		found := export.Positions(line)
		if submit.IsGoFailure(line) {
			for _, frame := range e.Trace[i:] {
				if places := export.Positions(frame); len(places) > 0 {
					e.Place = describePlace(e.Job.Dir, places[0])
					return
				}
			}
		}
		if len(found) > 0 {
			at = found[len(found)-1]
		}
	}
	e.Place = describePlace(e.Job.Dir, at)
}

func describePlace(dir rundir.Dir, at string) string {
	if at == "" {
		return ""
	}
	nb, err := nbformat.Read(dir.Notebook())
	if err != nil {
		return ""
	}
	return export.DescribePosition(nb, at)
}
