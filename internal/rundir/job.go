package rundir

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"time"
)

// StartedJob is a line in Starts: the job that started the run, and its cluster if it is known. A
// start on this machine has no job.
type StartedJob struct{ ID, Cluster string }

// ReadStarts reads the run's starts, in order.
func ReadStarts(d Dir) ([]StartedJob, error) {
	text, err := ReadFile(d.Starts())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("starts of run %s: %w", d.Name(), err)
	}
	var starts []StartedJob
	for line := range strings.Lines(string(text)) {
		starts = append(starts, parseStart(line))
	}
	return starts, nil
}

// parseStart parses "job ID TIME [CLUSTER]", written by the job. Any other line is a start
// without a job.
func parseStart(line string) StartedJob {
	words := strings.Fields(line)
	if len(words) < 2 || words[0] != "job" || !isJobID(words[1]) {
		return StartedJob{}
	}
	start := StartedJob{ID: words[1]}
	if len(words) > 3 {
		start.Cluster = words[3]
	}
	return start
}

// jobID matches the ids of batch systems' jobs, arrays and clusters. A command must not take one
// for an option.
var jobID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.@\[\]-]*$`)

func isJobID(text string) bool { return text == "" || jobID.MatchString(text) }

// LastStart returns the run's last start. The zero value means that there is none, or that it has
// no job.
func LastStart(d Dir) (StartedJob, error) {
	starts, err := ReadStarts(d)
	if err != nil || len(starts) == 0 {
		return StartedJob{}, err
	}
	return starts[len(starts)-1], nil
}

// KnownJobs returns the ids of all known jobs of the run.
func KnownJobs(d Dir) ([]string, error) {
	m, err := ReadManifest(d)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	starts, err := ReadStarts(d)
	if err != nil {
		return nil, err
	}
	all := append(m.EarlierJobs(), m.JobID)
	for _, start := range starts {
		all = append(all, start.ID)
	}
	return slices.DeleteFunc(all, func(id string) bool { return id == "" }), nil
}

// EarlierJobs returns the ids of the jobs that the run had before it was resumed.
func (m Manifest) EarlierJobs() (ids []string) {
	for _, before := range m.Resumed {
		ids = append(append(ids, before.JobID), before.Jobs...)
	}
	return ids
}

// Adopt gives m the job that started the run last, if m has another job or none: someone has queued
// the batch script by hand, or the command that queued it was killed before it could record the
// job. A job that has started again since its end was recorded, such as a requeued one, has not
// ended. Nor has one that started after the run was resumed as another. changed reports whether m
// has changed.
func (m *Manifest) Adopt(d Dir) (changed bool, err error) {
	starts, err := ReadStarts(d)
	if err != nil || len(starts) == 0 || starts[len(starts)-1].ID == "" {
		return false, err
	}
	start := starts[len(starts)-1]
	if start.ID == m.JobID {
		requeued := m.StartsAtEnd != nil && len(starts) > *m.StartsAtEnd
		if requeued {
			m.ForgetEnd()
		}
		changed = requeued || m.Cluster == "" && start.Cluster != ""
		m.Cluster = cmp.Or(m.Cluster, start.Cluster)
		return changed, nil
	}
	if n := len(m.Resumed); n > 0 && len(starts) <= m.Resumed[n-1].Starts {
		return false, nil // It is a job of before.
	}
	m.JobID, m.Cluster, m.Submitted = start.ID, start.Cluster, nil
	m.ForgetEnd()
	return true, nil
}

// RecordEnd records that the last start of the run in d has ended.
func (m *Manifest) RecordEnd(d Dir, at time.Time, exitCode int) error {
	starts, err := ReadStarts(d)
	if err != nil {
		return err
	}
	n := len(starts)
	m.Ended, m.ExitCode, m.StartsAtEnd = &at, &exitCode, &n
	return nil
}

// ForgetEnd makes m the manifest of a run that has not ended and whose state is unknown.
func (m *Manifest) ForgetEnd() {
	m.State, m.Reason, m.Explanation, m.ExitCode, m.Signal, m.FailedRank, m.Ended, m.StartsAtEnd = "", "", "", nil, 0, 0, nil, nil
}
