package submit

import (
	"gonbatch/internal/plural"
	"gonbatch/internal/rundir"
)

// JobID is a scheduler's identifier of a job, such as "4711". The zero value identifies no job.
type JobID string

// Job is a job that a scheduler accepted.
type Job struct {
	ID JobID
	// Dir is the job's run directory.
	Dir rundir.Dir
	// Cluster is the cluster that took the job if the scheduler has several; else "".
	Cluster string
	// Process runs the job and records its end if the scheduler doesn't; else nil.
	Process *rundir.Process
}

// JobOf returns the last job of the run in dir, from its manifest.
func JobOf(dir rundir.Dir, m rundir.Manifest) Job {
	return Job{ID: JobID(m.JobID), Cluster: m.Cluster, Process: m.Process, Dir: dir}
}

// String returns the job's name for messages.
func (j Job) String() string {
	if j.ID == "" {
		return "run " + j.Dir.Name()
	}
	return "job " + string(j.ID)
}

// RecordedStatus returns the job's status from its manifest.
func RecordedStatus(m rundir.Manifest) Status {
	status := Status{State: State(m.State), Reason: m.Reason, Explanation: m.Explanation, Signal: m.Signal, FailedRank: m.FailedRank}
	if m.ExitCode != nil {
		status.ExitCode = *m.ExitCode
	}
	return status
}

// Status is the status of a job.
type Status struct {
	State State
	// Raw is the scheduler's name for the state, such as "NODE_FAIL".
	Raw string
	// Reason is the scheduler's reason for the state; "" if it gives none.
	Reason string
	// Explanation is a sentence about what Reason means and what to do; it may be "".
	Explanation string
	// ExitCode and Signal are the job's, once it has ended. Use State to judge success: a job whose
	// node failed has exit code 0.
	ExitCode, Signal int
	// FailedRank is the rank that failed first; 0 if unknown.
	FailedRank int
	// Nodes are the job's nodes, in the scheduler's notation.
	Nodes string
	// Restarts counts how often the job was requeued.
	Restarts int
	// Ending is set if the job has ended except for its last processes.
	Ending bool
	// Inferred is set if the state is inferred from the job's files, because the scheduler does not
	// know the job or cannot be asked here.
	Inferred bool
}

// String returns the status in one line: "pending: Resources (waits for nodes that are in use)".
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
		text += ", restarted " + plural.Of(s.Restarts, "time")
	}
	return text
}
