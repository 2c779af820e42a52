package submit

import (
	"encoding/json"
	"fmt"
	"os"

	"al.essio.dev/pkg/shellescape"

	"gonbatch/internal/rundir"
)

// ResumeCommand is the command line that goes on with a run, for a person to type.
func ResumeCommand(dir rundir.Dir) string {
	return shellescape.QuoteCommand([]string{"submit", "resume", dir.Path()})
}

// WriteSpec keeps s in its run directory, so that ReadSpec finds it there.
func WriteSpec(s JobSpec) error {
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("job of run %s: %w", s.RunDir.Name(), err)
	}
	return rundir.WriteFileAtomic(s.RunDir.Spec(), append(text, '\n'), 0o600)
}

// ReadSpec reads the job that was submitted from dir, which may have been moved since.
func ReadSpec(dir rundir.Dir) (JobSpec, error) {
	text, err := os.ReadFile(dir.Spec())
	if err != nil {
		return JobSpec{}, fmt.Errorf("job of run %s: %w", dir.Name(), err)
	}
	var s JobSpec
	if err := json.Unmarshal(text, &s); err != nil {
		return JobSpec{}, fmt.Errorf("job %s: %w", dir.Spec(), err)
	}
	s.RunDir = dir
	return s, nil
}
