package slurm

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strings"

	"al.essio.dev/pkg/shellescape"

	"gonbatch/submit"
)

// Name is this scheduler's name in manifests.
const Name = "slurm"

// Scheduler runs jobs by SLURM.
type Scheduler struct{ runner submit.Runner }

var _ submit.Scheduler = (*Scheduler)(nil)

// New returns a Scheduler whose commands are run by runner.
func New(runner submit.Runner) *Scheduler { return &Scheduler{runner: runner} }

// SubmitCommand is the command line that queues spec's script, for a person to type.
func SubmitCommand(spec submit.JobSpec) string {
	return shellescape.QuoteCommand(append([]string{"sbatch"}, submitArgs(spec)...))
}

func submitArgs(spec submit.JobSpec) []string { return []string{"--parsable", spec.RunDir.Script()} }

// parsable is what sbatch --parsable prints: an id, and the cluster where there are several. A site's submit plugin may
// have printed lines of its own before.
var parsable = regexp.MustCompile(`(?m)^([0-9]+)(?:;(\S+))?\s*\z`)

// Submit queues the script in spec.RunDir. On an error the run directory stays, and the error names it.
func (s *Scheduler) Submit(ctx context.Context, spec submit.JobSpec) (submit.Job, error) {
	out, err := s.runner.Run(ctx, "sbatch", submitArgs(spec)...)
	if err != nil {
		return submit.Job{}, refused(spec, err)
	}
	m := parsable.FindSubmatch(out)
	if m == nil {
		return submit.Job{}, fmt.Errorf("sbatch printed no job id but %q; the job may be queued (look with squeue); its run directory is %s", out, spec.RunDir.Path())
	}
	return submit.Job{ID: submit.JobID(m[1]), Cluster: string(m[2]), Dir: spec.RunDir}, nil
}

// refused explains an error of sbatch in its own words.
func refused(spec submit.JobSpec, err error) error {
	kept := fmt.Sprintf("nothing is lost: all is staged in %s; queue it with: %s", spec.RunDir.Path(), SubmitCommand(spec))
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return fmt.Errorf("%w\n%s", ErrNoSLURM, kept)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("cannot queue the job: %w: is SLURM's controller up (scontrol ping)? The job may be queued (look with squeue before you repeat it)\n%s", err, kept)
	}
	return fmt.Errorf("SLURM did not take the job: %w\n%s", err, kept)
}

// ErrNoSLURM says that this machine has no SLURM commands.
var ErrNoSLURM = errors.New("cannot queue the job: sbatch is not on PATH; run submit on a login node of a SLURM cluster, or run the notebook on this machine with --local")

// Available tells, as ErrNoSLURM, that sbatch is not on PATH.
func Available() error {
	if _, err := exec.LookPath("sbatch"); err != nil {
		return ErrNoSLURM
	}
	return nil
}

// Cancel ends the job. A job that has ended, or that SLURM has forgotten, is no error.
func (s *Scheduler) Cancel(ctx context.Context, job submit.Job) error {
	_, err := s.runner.Run(ctx, "scancel", append(clusterArgs(job), string(job.ID))...)
	if err == nil || forgotten(err) {
		return nil
	}
	return fmt.Errorf("cancel job %s: %w", job.ID, err)
}

// clusterArgs chooses the job's cluster where its id was given with one.
func clusterArgs(job submit.Job) []string {
	if job.Cluster == "" {
		return nil
	}
	return []string{"--clusters=" + job.Cluster}
}

// forgotten tells from a command's error that SLURM no longer knows the job, or knows that it has ended.
func forgotten(err error) bool {
	var command *submit.CommandError
	return errors.As(err, &command) &&
		(strings.Contains(command.Output, "Invalid job id") || strings.Contains(command.Output, "already completing or completed"))
}
