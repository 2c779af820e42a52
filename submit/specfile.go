package submit

import (
	"fmt"

	"al.essio.dev/pkg/shellescape"

	"gonbatch/internal/rundir"
)

// ResumeCommand returns the command line with which the user can resume a run.
func ResumeCommand(dir rundir.Dir) string {
	return shellescape.QuoteCommand([]string{"submit", "resume", dir.Path()})
}

// specVersion is the version of job.json that this package writes and reads.
const specVersion = 1

// specFile is the content of job.json: the job and the version.
type specFile struct {
	Version int
	JobSpec
}

// WriteSpec writes s into a run directory, for ReadSpec.
func WriteSpec(into rundir.Dir, s JobSpec) error {
	return rundir.WriteJSON(into.Spec(), specFile{specVersion, s})
}

// ReadSpec reads the job of the run in dir, which may have been moved since.
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
