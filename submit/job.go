package submit

import (
	"fmt"

	"gonbatch/internal/rundir"
)

// JobID is a scheduler's name of a job, such as "4711". The zero value names none.
type JobID string

// Job is a job that a scheduler accepted.
type Job struct {
	ID JobID
	// Dir is the job's run directory.
	Dir rundir.Dir
	// Cluster is the cluster that took the job, where the scheduler has several; else "".
	Cluster string
	// Process runs the job and records its end, where that is not the scheduler's part; else nil.
	Process *rundir.Process
}

// JobOf is the last job of the run in dir, as its manifest knows it.
func JobOf(dir rundir.Dir, m rundir.Manifest) Job {
	return Job{ID: JobID(m.JobID), Cluster: m.Cluster, Process: m.Process, Dir: dir}
}

// String names the job for a person.
func (j Job) String() string {
	if j.ID == "" {
		return "run " + j.Dir.Name()
	}
	return "job " + string(j.ID)
}

// RecordedStatus is what the manifest knows of the job's state.
func RecordedStatus(m rundir.Manifest) Status {
	status := Status{State: State(m.State), Reason: m.Reason, FailedRank: m.FailedRank}
	if m.ExitCode != nil {
		status.ExitCode = *m.ExitCode
	}
	return status
}

// Status is how a job is doing.
type Status struct {
	State State
	// Raw is the scheduler's own word for the state, such as "NODE_FAIL".
	Raw string
	// Reason is the scheduler's own word for why the job is in that state; "" where it gives none.
	Reason string
	// Explanation says in a sentence what Reason means and what to do; "" where there is nothing to say.
	Explanation string
	// ExitCode and Signal are the job's own, once it ended. Judge by State: a job whose node failed has exit code 0.
	ExitCode, Signal int
	// FailedRank is the rank that failed first, as far as that is known; 0 otherwise.
	FailedRank int
	// Nodes are the nodes that the job runs on, in the scheduler's notation.
	Nodes string
	// Restarts counts how often the job was requeued.
	Restarts int
	// Ending marks a job that has ended but for its last processes.
	Ending bool
	// Inferred marks a state that only follows from what the job has left: the scheduler does not
	// know the job, or not here.
	Inferred bool
}

// String is the status on one line: "pending: Resources (waits for nodes that are in use)".
func (s Status) String() string {
	text := s.State.String()
	if s.Reason != "" {
		text += ": " + s.Reason
	}
	if s.Explanation != "" {
		text += " (" + s.Explanation + ")"
	}
	if s.State == Running && s.Nodes != "" {
		text += " on " + s.Nodes
	}
	if s.Ending {
		text += ", its last processes are ending"
	}
	if s.Restarts > 0 {
		text += fmt.Sprintf(", restarted %d times", s.Restarts)
	}
	return text
}
