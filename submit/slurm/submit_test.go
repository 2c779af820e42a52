package slurm

import (
	"context"
	"fmt"
	"os/exec"
	"testing"

	"gonbatch/internal/rundir"
	"gonbatch/submit"
)

// config returns the relevant part of "scontrol show config".
func config(cluster string) answer {
	return answer{out: "Configuration data as of 2026-11-21T10:15:00\nCgroupPlugin = autodetect\nClusterName             = " + cluster + "\n"}
}

// squeue returns the query for the jobs of a run's owner.
func squeue(dir rundir.Dir) string {
	return fmt.Sprintf("squeue --noheader --all --states=all --user=%d --sort=i --format=%%i|%%T|%%o", owner(dir))
}

func TestSubmit(t *testing.T) {
	dir := rundir.At("/runs/a b")
	const line = "sbatch --parsable /runs/a b/job.sh"
	kept := "\nnothing is lost: everything is staged in /runs/a b; queue it with: sbatch --parsable '/runs/a b/job.sh'"
	late := "cannot queue the job: sbatch did not answer in time: is SLURM's controller up (scontrol ping)? The job may be queued: " +
		"submit status '/runs/a b' says so once SLURM answers; check before you submit again"
	queued := "33|PENDING|" + dir.Script() + "\n"
	for _, tc := range []struct {
		name   string
		answer answer
		jobs   string
		want   submit.Job
		err    string
	}{
		{name: "id", answer: answer{out: "33\n"}, want: submit.Job{ID: "33", Cluster: "here", Dir: dir}},
		{name: "id and cluster", answer: answer{out: "33;east\n"}, want: submit.Job{ID: "33", Cluster: "east", Dir: dir}},
		{name: "a site's own words first", answer: answer{out: "Welcome\n33\n"}, want: submit.Job{ID: "33", Cluster: "here", Dir: dir}},
		{name: "a site's own words last", answer: answer{out: "33\nYour account has 12 hours left.\n"}, want: submit.Job{ID: "33", Cluster: "here", Dir: dir}},
		{name: "a site's own number", answer: answer{out: "33\n12\n"}, jobs: "12|RUNNING|/runs/other/job.sh\n" + queued,
			want: submit.Job{ID: "33", Cluster: "here", Dir: dir}},
		{name: "no id, but a job", answer: answer{out: "ok"}, jobs: queued, want: submit.Job{ID: "33", Cluster: "here", Dir: dir}},
		{name: "no id", answer: answer{out: "ok"}, err: `sbatch printed no job id but "ok"; the job may be queued (check with squeue); its run directory is /runs/a b`},
		{name: "refused", answer: answer{err: commandError("sbatch", "sbatch: error: invalid partition specified: nope")},
			err: "SLURM rejected the job: sbatch: sbatch: error: invalid partition specified: nope" + kept},
		{name: "SLURM's own time-out, but a job", answer: answer{err: commandError("sbatch", "Batch job submission failed: Socket timed out on send/recv operation")}, jobs: queued,
			want: submit.Job{ID: "33", Cluster: "here", Dir: dir}},
		{name: "missing", answer: answer{err: &submit.CommandError{Name: "sbatch", Err: exec.ErrNotFound}}, err: errNoSLURM.Error() + kept},
		{name: "no answer", answer: answer{err: &submit.CommandError{Name: "sbatch", Err: context.DeadlineExceeded}}, err: late},
		{name: "no answer, but a job", answer: answer{err: &submit.CommandError{Name: "sbatch", Err: context.DeadlineExceeded}}, jobs: queued,
			want: submit.Job{ID: "33", Cluster: "here", Dir: dir}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := New(submit.Shell{Runner: &fake{t: t, answers: map[string]answer{line: tc.answer, "scontrol show config": config("here"), squeue(dir): {out: tc.jobs}}}})
			got, err := s.Submit(t.Context(), submit.JobSpec{RunDir: dir})
			if got != tc.want || fmt.Sprint(err) != orNil(tc.err) {
				t.Errorf("Submit = %+v, %v\nwant     %+v, %s", got, err, tc.want, tc.err)
			}
		})
	}
}

// TestSubmitIsNotCutOff: a context that has ended does not stop sbatch, and the job is known.
func TestSubmitIsNotCutOff(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	runner := execFake(t, map[string]string{"scontrol": "echo 'ClusterName = here'", "sbatch": "sleep 0.2; echo 33"})
	got, err := New(submit.Shell{Runner: runner}).Submit(ctx, submit.JobSpec{RunDir: rundir.At(dir)})
	if want := (submit.Job{ID: "33", Cluster: "here", Dir: rundir.At(dir)}); got != want || err != nil {
		t.Errorf("Submit = %+v, %v; want %+v", got, err, want)
	}
}

// TestSubmitOfAResumedRun: the run's earlier job, which SLURM still knows, is not mistaken for the
// one that was just refused.
func TestSubmitOfAResumedRun(t *testing.T) {
	dir := rundir.At(t.TempDir())
	if err := (rundir.Manifest{Resumed: []rundir.Resumption{{JobID: "33"}}}).Write(dir); err != nil {
		t.Fatal(err)
	}
	s := New(submit.Shell{Runner: &fake{t: t, answers: map[string]answer{
		"sbatch --parsable " + dir.Script(): {err: commandError("sbatch", "Socket timed out")}, "scontrol show config": config("here"),
		squeue(dir): {out: "33|CANCELLED|" + dir.Script() + "\n"},
	}}})
	if job, err := s.Submit(t.Context(), submit.JobSpec{RunDir: dir}); err == nil {
		t.Errorf("job %+v was queued", job)
	}
}
