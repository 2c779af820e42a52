package rundir

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// manifestFormat is the version of the manifest's format that this package writes and reads.
const manifestFormat = 1

// Manifest records what ran, from what, where, and how it ended: enough to explain a result a year
// later.
type Manifest struct {
	// Format is the version of this format; Write sets it.
	Format int `json:"format"`
	// Name is the run directory's name.
	Name string `json:"name"`
	// Notebook is the notebook's path when it was submitted, and its hash.
	Notebook File `json:"notebook"`
	// Part is set if the run is of one cell of a kernel's session. It began with the session's
	// values of %keep, so --from does not reuse it unless --from-run names it.
	Part bool `json:"part,omitempty"`
	// Git is the state of the notebook's repository; nil if it is not in one.
	Git *Git `json:"git,omitempty"`
	// SourcesSHA256 is the hash of the exported Go module.
	SourcesSHA256 string `json:"sources_sha256,omitempty"`
	// Cells are the job's cells, in the order in which they run.
	Cells []Cell `json:"cells,omitempty"`
	// CommandLine is the command that created the run.
	CommandLine []string `json:"command_line,omitempty"`
	// Parameters are the values of the notebook's parameters, and Flags those of its programs'
	// flags, by name: as given to the job, or else the defaults in the cells.
	Parameters map[string]string `json:"parameters,omitempty"`
	Flags      map[string]string `json:"flags,omitempty"`
	// Versions are the versions of the tools and libraries, by name: "gonbatch", "go", "gomlx",
	// "go-xla".
	Versions map[string]string `json:"versions,omitempty"`
	// Options are the effective options, by name.
	Options map[string]any `json:"options,omitempty"`
	// ReusedFrom is the run whose first cells this one did not run again; empty if all ran.
	ReusedFrom string `json:"reused_from,omitempty"`
	// Scheduler is the kind of scheduler: "slurm" or "local".
	Scheduler string `json:"scheduler,omitempty"`
	// JobID is the scheduler's id of the job; empty until it was accepted.
	JobID string `json:"job_id,omitempty"`
	// Cluster is the scheduler's cluster, if it named one.
	Cluster string `json:"cluster,omitempty"`
	// Process is the submit command that runs the job on this machine and records its end; nil for
	// a queued job.
	Process *Process `json:"process,omitempty"`
	// State is the last known state of the job, in the terms of package submit.
	State string `json:"state,omitempty"`
	// Reason says why the job is in that state, if that is known, and Explanation what that means.
	Reason      string `json:"reason,omitempty"`
	Explanation string `json:"explanation,omitempty"`
	// ExitCode is the job's exit code; nil until it is known. Signal is the signal that ended it.
	ExitCode *int `json:"exit_code,omitempty"`
	Signal   int  `json:"signal,omitempty"`
	// FailedRank is the rank that failed first, as far as that is known.
	FailedRank int `json:"failed_rank,omitempty"`
	// Resumed are the commands that started the run again.
	Resumed []Resumption `json:"resumed,omitempty"`
	// Created, Submitted and Ended are the run's times; nil until they occur.
	Created   time.Time  `json:"created"`
	Submitted *time.Time `json:"submitted,omitempty"`
	Ended     *time.Time `json:"ended,omitempty"`
	// StartsAtEnd is the number of starts when the run's end was recorded; nil if it is not known.
	// If there are more now, the same job was requeued and the run has not ended.
	StartsAtEnd *int `json:"starts_at_end,omitempty"`
}

// Resumption is a command that started the run again, and the job before it.
type Resumption struct {
	Time        time.Time `json:"time"`
	CommandLine []string  `json:"command_line"`
	JobID       string    `json:"job_id_before,omitempty"`
	State       string    `json:"state_before,omitempty"`
	// Jobs are all earlier jobs of the run, including those that were queued by hand, and Starts is
	// the number of their starts.
	Jobs   []string `json:"jobs_before,omitempty"`
	Starts int      `json:"starts_before,omitempty"`
}

// File is a file with its content's hash.
type File struct {
	Path   string `json:"path,omitempty"`
	SHA256 string `json:"sha256,omitempty"`
}

// Git is the state of a repository.
type Git struct {
	Commit string `json:"commit"`
	// Dirty is set if the work tree had changes that are not in the commit.
	Dirty bool `json:"dirty"`
}

// ReadManifest reads the manifest of d.
func ReadManifest(d Dir) (Manifest, error) {
	var m Manifest
	if err := ReadJSON(d.ManifestPath(), &m); err != nil {
		return Manifest{}, fmt.Errorf("manifest of run %s: %w", d.Name(), err)
	}
	if m.Format != manifestFormat {
		return Manifest{}, fmt.Errorf("manifest %s: format %d, this version reads %d", d.ManifestPath(), m.Format, manifestFormat)
	}
	for _, id := range append(m.EarlierJobs(), m.JobID) {
		if !isJobID(id) {
			return Manifest{}, fmt.Errorf("manifest %s: %q is no job id", d.ManifestPath(), id)
		}
	}
	return m, nil
}

// Write atomically writes m as the manifest of d.
func (m Manifest) Write(d Dir) error {
	m.Format = manifestFormat
	return WriteJSON(d.ManifestPath(), m)
}

// manifestPatience is how long a change of the manifest waits for another one: longer than it takes
// to notice that the other machine is dead.
const manifestPatience = 2 * lockSilence

// UpdateManifest reads the manifest of d, has change edit it, and writes it back. Changes by
// several processes happen one after the other. It refuses a run of another user.
func UpdateManifest(ctx context.Context, d Dir, waiting func(Process), change func(*Manifest)) (err error) {
	if err := d.CheckOwner(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, manifestPatience)
	defer cancel()
	lock, err := AcquireLock(ctx, d.manifestLock(), waiting)
	if err != nil {
		return fmt.Errorf("manifest of run %s: %w", d.Name(), err)
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	m, err := ReadManifest(d)
	if err != nil {
		return err
	}
	change(&m)
	return m.Write(d)
}
