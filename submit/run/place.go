package submit

import (
	"gonbatch/internal/nbformat"
	"gonbatch/internal/rundir"
	"gonbatch/submit/export"
)

// failedPlace describes the place in the notebook where a rank failed: the first that the trace of a failure in the lines names,
// else the last one in them. It is "" where they name none, or the notebook cannot be read.
func failedPlace(dir rundir.Dir, lines []string) string {
	at := ""
	for i, line := range lines {
		found := export.Positions(line)
		if goFailure.MatchString(line) {
			for _, frame := range lines[i:] {
				if places := export.Positions(frame); len(places) > 0 {
					return describePlace(dir, places[0])
				}
			}
		}
		if len(found) > 0 {
			at = found[len(found)-1]
		}
	}
	return describePlace(dir, at)
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
