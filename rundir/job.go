package rundir

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// StartedJob is a line of Starts: the job that started the run, and its cluster where that is known. A start on this machine has no
// job.
type StartedJob struct{ ID, Cluster string }

// LastStart is the run's last start. Its zero value is none.
func LastStart(d Dir) (StartedJob, error) {
	text, err := os.ReadFile(d.Starts())
	if errors.Is(err, fs.ErrNotExist) {
		return StartedJob{}, nil
	}
	if err != nil {
		return StartedJob{}, fmt.Errorf("starts of run %s: %w", d.Name(), err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	// "job ID TIME [CLUSTER]", as the batch script writes it.
	words := strings.Fields(lines[len(lines)-1])
	if len(words) < 2 || words[0] != "job" {
		return StartedJob{}, nil
	}
	start := StartedJob{ID: words[1]}
	if len(words) > 3 {
		start.Cluster = words[3]
	}
	return start, nil
}

// Adopt gives m the job that has started the run last, where m knows another or none: a person has queued the batch script, or the
// command that queued it was killed before it could say so. It reports whether m has changed. A job that the run had before it was
// resumed is none to adopt.
func (m *Manifest) Adopt(d Dir) (changed bool, err error) {
	start, err := LastStart(d)
	if err != nil || start.ID == "" {
		return false, err
	}
	if start.ID == m.JobID {
		changed = m.Cluster == "" && start.Cluster != ""
		m.Cluster = cmp.Or(m.Cluster, start.Cluster)
		return changed, nil
	}
	for _, before := range m.Resumed {
		if before.JobID == start.ID {
			return false, nil
		}
	}
	m.JobID, m.Cluster = start.ID, start.Cluster
	m.State, m.Reason, m.ExitCode, m.Ended, m.Submitted = "", "", nil, nil, nil
	return true, nil
}
