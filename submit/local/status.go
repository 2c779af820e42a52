package main

import (
	"context"
	"fmt"

	"gonbatch/internal/rundir"
	"gonbatch/submit"
)

// manifestAsker believes the manifest, unless the process that should have recorded the end there is gone.
type manifestAsker struct{}

// Status reads the manifest.
func (manifestAsker) Status(_ context.Context, job submit.Job) (submit.Status, error) {
	m, err := rundir.ReadManifest(job.Dir)
	if err == nil && abandoned(m) {
		m, err = rundir.ReadManifest(job.Dir) // It may have ended as usual between the two looks.
	}
	if err != nil {
		return submit.Status{}, fmt.Errorf("status of run %s: %w", job.Dir.Name(), err)
	}
	if abandoned(m) {
		return submit.Status{State: submit.Lost, Reason: fmt.Sprintf("the submit command that ran it (process %d on %s) is gone", m.Process.PID, m.Process.Host)}, nil
	}
	status := submit.Status{State: submit.State(m.State), Reason: m.Reason}
	if m.ExitCode != nil {
		status.ExitCode = *m.ExitCode
	}
	return status, nil
}

// abandoned tells whether nobody is left who could record the run's end.
func abandoned(m rundir.Manifest) bool {
	return m.Process != nil && !submit.State(m.State).Ended() && m.Process.Gone()
}
