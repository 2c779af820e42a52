package submit

import (
	"fmt"

	"al.essio.dev/pkg/shellescape"

	"gonbatch/internal/rundir"
)

// ResumeCommand is the command line that goes on with a run, for a person to type.
func ResumeCommand(dir rundir.Dir) string {
	return shellescape.QuoteCommand([]string{"submit", "resume", dir.Path()})
}

// specVersion is the version of job.json that this package writes and reads.
const specVersion = 1

// specFile is job.json: the job as it is, and the version.
type specFile struct {
	Version int
	JobSpec
}

// WriteSpec keeps s in a run directory, so that ReadSpec finds it there.
func WriteSpec(into rundir.Dir, s JobSpec) error {
	return rundir.WriteJSON(into.Spec(), specFile{specVersion, s})
}

// ReadSpec reads the job that was submitted from dir, which may have been moved since.
func ReadSpec(dir rundir.Dir) (JobSpec, error) {
	var f specFile
	if err := rundir.ReadJSON(dir.Spec(), &f); err != nil {
		return JobSpec{}, fmt.Errorf("job of run %s: %w", dir.Name(), err)
	}
	if f.Version != specVersion {
		return JobSpec{}, fmt.Errorf("job %s: version %d, this version of submit reads %d", dir.Spec(), f.Version, specVersion)
	}
	f.RunDir = dir
	return f.JobSpec, nil
}
