package slurm

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"al.essio.dev/pkg/shellescape"

	"gonbatch/internal/rundir"
	"gonbatch/submit"
)

// submitLimit is how long sbatch may take. It keeps trying while the controller is busy, and must
// not be cut off in the middle.
const submitLimit = 2 * time.Minute

func submitCommand(spec submit.JobSpec) string {
	return shellescape.QuoteCommand(append([]string{"sbatch"}, submitArgs(spec)...))
}

// warnIgnored warns about sbatch's options in the environment, which the job ignores.
func (s *Scheduler) warnIgnored() {
	for _, ignored := range ignoredOptions(s.shell.Environ) {
		instead := "give sbatch's option with --directive"
		if ignored.Option != "" {
			instead = "give " + ignored.Option
		}
		s.shell.Warn("%s is ignored: %s", ignored.Variable, instead)
	}
}

func submitArgs(spec submit.JobSpec) []string { return []string{"--parsable", spec.RunDir.Script()} }

// parsable matches the output of sbatch --parsable: an id, and the cluster if there are several. A
// site's submit plugin may print other lines before or after it.
var parsable = regexp.MustCompile(`(?m)^([0-9]+)(?:;(\S+))?\s*$`)

// Submit queues the script in spec.RunDir. The end of ctx does not cut off sbatch, which may have
// queued the job already. If its answer is unclear, SLURM's list of jobs decides whether it has the
// job. On an error the run directory stays, and the error names it.
func (s *Scheduler) Submit(ctx context.Context, spec submit.JobSpec) (submit.Job, error) {
	interrupted := ctx
	ctx = context.WithoutCancel(ctx)
	limited, cancel := context.WithTimeout(ctx, submitLimit)
	defer cancel()
	stop := context.AfterFunc(interrupted, func() {
		fmt.Fprintln(s.shell.Err, "submit: waiting for sbatch, which may have queued the job already; interrupt again to stop waiting")
		if i := (submit.Interrupt{}); errors.As(context.Cause(interrupted), &i) {
			select {
			case <-i.Again:
				cancel()
			case <-limited.Done():
			}
		}
	})
	defer stop()
	s.warnIgnored()
	out, err := s.runner.Run(limited, "sbatch", submitArgs(spec)...)
	ids := parsable.FindAllSubmatch(out, -1)
	if err == nil && len(ids) == 1 {
		job := submit.Job{ID: submit.JobID(ids[0][1]), Cluster: string(ids[0][2]), Dir: spec.RunDir}
		if job.Cluster == "" {
			job.Cluster, _ = s.clusterName(ctx) // The batch script records it too.
		}
		return job, nil
	}
	if err == nil || len(ids) > 0 || unclear(err) {
		if job, ok := s.accepted(ctx, spec); ok {
			return job, nil
		}
	}
	if errors.Is(err, context.Canceled) {
		return submit.Job{}, fmt.Errorf("%w: sbatch has not said whether SLURM has the job: submit status %s says so once SLURM answers; check before you submit again",
			context.Cause(interrupted), shellescape.Quote(spec.RunDir.Path()))
	}
	if err != nil {
		return submit.Job{}, refused(spec, err)
	}
	return submit.Job{}, fmt.Errorf("sbatch printed no job id but %q; the job may be queued (check with squeue); its run directory is %s", out, spec.RunDir.Path())
}

// unclear reports whether SLURM may have accepted the job despite sbatch's error: sbatch, or the
// controller's answer to it, timed out.
func unclear(err error) bool {
	var command *submit.CommandError
	return errors.Is(err, context.DeadlineExceeded) ||
		errors.As(err, &command) && strings.Contains(strings.ToLower(command.Output), "timed out")
}

// accepted reports whether SLURM has accepted the job after all: whether it knows a job that the
// run has not had before.
func (s *Scheduler) accepted(ctx context.Context, spec submit.JobSpec) (submit.Job, bool) {
	before, err := rundir.KnownJobs(spec.RunDir)
	if err != nil {
		return submit.Job{}, false
	}
	job, err := s.Survey(ctx).Find(ctx, spec.RunDir, before)
	return job, err == nil && job.ID != ""
}

// refused returns sbatch's error with an explanation.
func refused(spec submit.JobSpec, err error) error {
	kept := fmt.Sprintf("nothing is lost: everything is staged in %s; queue it with: %s", spec.RunDir.Path(), submitCommand(spec))
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return fmt.Errorf("%w\n%s", errNoSLURM, kept)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("cannot queue the job: %w: is SLURM's controller up (scontrol ping)? The job may be queued: submit status %s says so once SLURM answers; check before you submit again",
			err, shellescape.Quote(spec.RunDir.Path()))
	}
	var command *submit.CommandError
	if errors.As(err, &command) && submitLimitWord.MatchString(command.Output) {
		return fmt.Errorf("%w (%s)\n%s", submit.ErrQueueFull, submitLimitWord.FindString(command.Output), kept)
	}
	return fmt.Errorf("SLURM rejected the job: %w\n%s", err, kept)
}

// submitLimitWord matches sbatch's names for the limits of how many jobs a user, an account or a
// quality of service may have in the queue: AssocMaxSubmitJobLimit, QOSMaxSubmitJobPerUserLimit.
var submitLimitWord = regexp.MustCompile(`\b(?:Assoc|QOS)\w*SubmitJob\w*Limit\b`)
