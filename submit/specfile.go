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

// specFile is the content of job.json: the job as it was asked for, and as its scheduler has
// decided it.
type specFile struct {
	Version int
	JobSpec
	Decided JobSpec
}

// WriteSpec writes a job into a run directory: as it was asked for, because a resumed run may get
// another MPI, and as its scheduler has decided it, for the job itself.
func WriteSpec(into rundir.Dir, asked, decided JobSpec) error {
	return rundir.WriteJSON(into.Spec(), specFile{specVersion, asked, decided})
}

// ReadSpec reads the job of the run in dir, which may have been moved since, as it was asked for.
func ReadSpec(dir rundir.Dir) (JobSpec, error) {
	f, err := readSpecFile(dir)
	f.RunDir = dir
	return f.JobSpec, err
}

// ReadDecided reads the job of the run in dir as its scheduler has decided it.
func ReadDecided(dir rundir.Dir) (JobSpec, error) {
	f, err := readSpecFile(dir)
	f.Decided.RunDir = dir
	return f.Decided, err
}

func readSpecFile(dir rundir.Dir) (f specFile, err error) {
	if err := rundir.ReadJSON(dir.Spec(), &f); err != nil {
		return f, fmt.Errorf("job of run %s: %w", dir.Name(), err)
	}
	if f.Version != specVersion {
		return f, fmt.Errorf("job %s: version %d, this version of submit reads %d", dir.Spec(), f.Version, specVersion)
	}
	return f, nil
}
