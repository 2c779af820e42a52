package slurm

import (
	"fmt"
	"strings"
	"testing"

	"gonbatch/internal/rundir"
	"gonbatch/submit"
)

// dying is a training run that dies at the given updates, one in each start, and then succeeds.
const dying = `#!/bin/bash
updates=(%s)
update=${updates[$GONBATCH_RESTARTS]}
[ -n "$update" ] || exit 0
[ "$SLURM_PROCID" = 0 ] || exec sleep 60
printf '%%-20d\n' "$update" > "$PROGRESS"
exit 9
`

// TestDeaths: a training run whose rank dies by itself starts again in place, until two starts in a
// row die at the same update.
func TestDeaths(t *testing.T) {
	for _, tc := range []struct {
		name, program string
		max           int
		change        func(*start)
		starts, code  int
		says          string
	}{
		{name: "bad luck twice", program: fmt.Sprintf(dying, "60 80"), max: 10, starts: 3, says: "cell train died after update 80 with exit code 9; start 3 resumes from its newest checkpoint"},
		{name: "a bug", program: fmt.Sprintf(dying, "60 80 80 90"), max: 10, starts: 3, code: 9,
			says: "cell train died after update 80 in two starts in a row: that is a bug, not bad luck, so it is not started again\n"},
		{name: "a bug that rank 0 reports one update earlier", program: fmt.Sprintf(dying, "60 80 79 90"), max: 10, starts: 3, code: 9,
			says: "cell train died after update 79 in two starts in a row: that is a bug, not bad luck, so it is not started again\n"},
		{name: "two updates apart", program: fmt.Sprintf(dying, "60 62"), max: 10, starts: 3, says: "cell train died after update 62 with exit code 9; start 3 resumes"},
		{name: "too often", program: fmt.Sprintf(dying, "10 20 30"), max: 1, starts: 2, code: 9,
			says: "cell train died after update 20; restarts so far: 1, and --max-restarts=1\ngonbatch: resume it with: submit resume "},
		{name: "SLURM's restarts count", program: fmt.Sprintf(dying, "10 20 30"), max: 1, starts: 1, code: 9,
			change: func(s *start) { s.env = []string{"SLURM_RESTART_COUNT=1"} }, says: "restarts so far: 1, and --max-restarts=1"},
		{name: "never", program: fmt.Sprintf(dying, "10 20 30"), starts: 1, code: 9, says: "--max-restarts=0"},
		{name: "no training run", program: "#!/bin/bash\n[ $SLURM_PROCID = 0 ] || exec sleep 60\nexit 3", max: 10, starts: 1, code: 3, says: "job 12 ends with exit code 3"},
		{name: "folders of checkpoints that are not whole, or set aside", max: 10, starts: 1, code: 3, says: "job 12 ends with exit code 3",
			program: "#!/bin/bash\n[ $SLURM_PROCID = 0 ] || exec sleep 60\ncd \"$GONBATCH_RUN_DIR/checkpoints\" && mkdir -p train/step-00000005 train/earlier-1/step-00000003 && touch train/earlier-1/step-00000003/checkpoint.json\nexit 3"},
		{name: "a checkpoint, and no update", max: 10, starts: 2, code: 3, says: "cell train died before its first update in two starts in a row",
			program: "#!/bin/bash\n[ $SLURM_PROCID = 0 ] || exec sleep 60\ncd \"$GONBATCH_RUN_DIR/checkpoints\" && mkdir -p train/step-00000005 && touch train/step-00000005/checkpoint.json\nexit 3"},
		{name: "SLURM ends the start", program: fmt.Sprintf(dying, "60"), max: 10, starts: 1, code: 9, change: func(s *start) { s.state = "COMPLETING Reason=None" },
			says: "SLURM is ending this start of the job"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := newStart(t)
			s.spec.MaxRestarts = tc.max
			s.programs["train"] = strings.ReplaceAll(tc.program, "$PROGRESS", s.spec.RunDir.Progress())
			if tc.change != nil {
				tc.change(s)
			}
			if s.state != "" {
				s.write(t, "state", s.state)
			}
			out, code := s.run(t, 0)
			if code != tc.code || !strings.Contains(out, tc.says) {
				t.Errorf("exit code %d, want %d; it should say %q:\n%s", code, tc.code, tc.says, out)
			}
			if n, err := rundir.CountStarts(s.spec.RunDir); n != tc.starts || err != nil {
				t.Errorf("%d starts, %v; want %d\n%s", n, err, tc.starts, out)
			}
		})
	}
}

// TestDeathIsTold: only the error of a job that died twice at the same update says so.
func TestDeathIsTold(t *testing.T) {
	s := newStart(t)
	s.spec.MaxRestarts = 5
	s.programs["train"] = strings.ReplaceAll(fmt.Sprintf(dying, "7 7"), "$PROGRESS", s.spec.RunDir.Progress())
	s.run(t, 0)
	job := submit.Job{ID: "12", Dir: s.spec.RunDir}
	failed := submit.Status{State: submit.Failed, ExitCode: 9}
	const want = "cell train died after update 7 in two starts in a row: that is a bug, not bad luck"
	if got := submit.NewJobError(job, failed).Error(); !strings.Contains(got, want) {
		t.Errorf("%q is not in: %s", want, got)
	}
	if _, err := rundir.AddStart(s.spec.RunDir, "job 13"); err != nil {
		t.Fatal(err)
	}
	if err := rundir.NoteLogs(s.spec.RunDir); err != nil {
		t.Fatal(err)
	}
	if got := submit.NewJobError(job, failed).Error(); strings.Contains(got, want) {
		t.Errorf("of a later start: %s", got)
	}
}

// TestFailureOfThisStart: the log of an earlier start does not explain a later one's failure.
func TestFailureOfThisStart(t *testing.T) {
	s := newStart(t)
	s.programs["train"] = "#!/bin/bash\nexec >> \"$GONBATCH_RUN_DIR/logs/rank-$SLURM_PROCID.log\"\n" +
		"[ $GONBATCH_RESTARTS = 1 ] || { echo 'panic: no such file'; exit 2; }\necho 'bad licence'; exit 3\n"
	job := submit.Job{ID: "12", Dir: s.spec.RunDir}
	s.run(t, 0)
	if said := submit.NewJobError(job, submit.Status{State: submit.Failed, ExitCode: 2}).Error(); !strings.Contains(said, "rank 0: panic: no such file") {
		t.Errorf("the first start: %s", said)
	}
	s.run(t, 0)
	said := submit.NewJobError(job, submit.Status{State: submit.Failed, ExitCode: 3}).Error()
	if !strings.Contains(said, "bad licence") || strings.Contains(said, "panic") || strings.Contains(said, "in a row") {
		t.Errorf("the second start: %s", said)
	}
}
