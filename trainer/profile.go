package trainer

import (
	"errors"
	"path/filepath"

	"gonbatch/internal/rundir"
	"gonbatch/trainer/internal/saved"
)

// ProfileConfig records what each rank does during some updates: waiting for batches, steps,
// callbacks, validations and checkpoints, and the loading of the batches. Within a step, on CPUs,
// it records the convolutions and products that oneDNN computes, and the collectives; what is
// between them is XLA's own. Rank 0 writes the trace of all ranks as a file that
// https://ui.perfetto.dev and chrome://tracing open.
type ProfileConfig struct {
	// Steps are the first and the last update to record, such as "10-15", counted from 1. What
	// follows the last one belongs to it, until the next batch. Default: none.
	Steps string `yaml:"steps" help:"updates to record in a trace for Perfetto, such as 10-15 (empty: none)"`
	// Dir is the folder of the trace. Default: traces in the run directory.
	Dir string `yaml:"dir" help:"folder of the trace (default: traces in the run directory)"`
}

// profileDir returns the folder of the trace; "" if nothing is recorded.
func (c Config) profileDir(env rundir.Env) (string, error) {
	switch {
	case c.Profile.Steps == "" || c.Profile.Dir != "":
		return c.Profile.Dir, nil
	case env.InRun():
		return env.Dir.Traces(), nil
	}
	return "", errors.New("profile.steps: there is no run directory for the trace: set profile.dir")
}

// profile starts or ends the recording, if it is time. All ranks call it before each batch.
func (r *run) profile() error {
	if r.recorder.Before(r.at.Step) {
		return r.writeProfile()
	}
	return nil
}

// endProfile ends the recording with the training. If it hasn't begun by then, nobody would know
// why there is no trace.
func (r *run) endProfile() error {
	switch {
	case r.recorder.IsOn():
		return r.writeProfile()
	case r.at.Finished && r.recorder.Missed(r.at.Step):
		r.printf("%sprofile.steps is %q, but the training has ended after step %d: there is no trace\n", r.label(), r.config.Profile.Steps, r.at.Step)
	}
	return nil
}

// writeProfile writes the trace of all ranks. A trace that can't be written does not end the
// training.
func (r *run) writeProfile() error {
	line, err := r.recorder.Write(filepath.Join(r.config.Profile.Dir, saved.FileName(r.config.Name)), r.config.Name, hostname(), r.at.Step)
	if line != "" {
		r.printf("%s%s\n", r.label(), line)
	}
	return err
}
