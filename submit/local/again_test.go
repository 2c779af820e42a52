package local

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"gonbatch/internal/rundir"
	"gonbatch/submit"
)

// dying is a training run whose rank 0 dies at the given updates, one in each start, while the
// others wait; then it succeeds.
const dying = `rank=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-${RANK:-0}}}
updates=(%s)
update=${updates[$GONBATCH_RESTARTS]}
[ -n "$update" ] || exit 0
[ "$rank" = 0 ] || exec sleep 600
printf '%%-20d\n' "$update" > "$GONBATCH_RUN_DIR/progress"
kill -9 $$`

// TestDeaths: a training run whose rank dies by itself starts again, until two starts in a row die
// at the same update.
func TestDeaths(t *testing.T) {
	for _, tc := range []struct {
		name    string
		program string
		max     int
		starts  int
		well    bool
		says    string
	}{
		{name: "bad luck twice", program: fmt.Sprintf(dying, "60 80"), max: 10, starts: 3, well: true},
		{name: "a bug", program: fmt.Sprintf(dying, "60 80 80 90"), max: 10, starts: 3, says: "cell train died after update 80 in two starts in a row: that is a bug, not bad luck, so it is not started again"},
		{name: "too often", program: fmt.Sprintf(dying, "10 20 30"), max: 1, starts: 2, says: "cell train died after update 20; restarts so far: 1, and --max-restarts=1\ngonbatch: resume it with: submit resume "},
		{name: "never", program: fmt.Sprintf(dying, "10 20 30"), starts: 1, says: "--max-restarts=0"},
		{name: "no training run", program: "exit 3", max: 10, starts: 1, says: "exit code 3"},
		{name: "an empty folder of checkpoints", program: `mkdir -p "$GONBATCH_RUN_DIR/checkpoints/train"; exit 3`, max: 10, starts: 1, says: "exit code 3"},
		{name: "folders of checkpoints that are not whole, or set aside", max: 10, starts: 1, says: "exit code 3",
			program: `cd "$GONBATCH_RUN_DIR/checkpoints"; mkdir -p train/step-00000005 train/earlier-1/step-00000003; touch train/earlier-1/step-00000003/checkpoint.json; exit 3`},
		{name: "a checkpoint, and no update", program: `mkdir -p "$GONBATCH_RUN_DIR/checkpoints/train/step-5"; touch "$GONBATCH_RUN_DIR/checkpoints/train/step-5/checkpoint.json"; exit 3`, max: 10, starts: 2, says: "cell train died before its first update in two starts in a row"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			spec := newSpec(t, 1, [2]string{"train", tc.program})
			spec.MaxRestarts = tc.max
			var errOut bytes.Buffer
			err := Runner{Out: &bytes.Buffer{}, Err: &errOut}.Run(t.Context(), staged(t, spec))
			var job *submit.JobError
			if (err == nil) != tc.well || err != nil && !errors.As(err, &job) {
				t.Errorf("error %v", err)
			}
			if said := fmt.Sprint(errOut.String(), err); !strings.Contains(said, tc.says) {
				t.Errorf("it should say %q:\n%s", tc.says, said)
			}
			if n, err := rundir.CountStarts(spec.RunDir); n != tc.starts || err != nil {
				t.Errorf("%d starts, %v; want %d\n%s", n, err, tc.starts, &errOut)
			}
		})
	}
}

// TestFailureOfThisStart: the log of an earlier start does not explain a later one's failure.
func TestFailureOfThisStart(t *testing.T) {
	spec := newSpec(t, 1, [2]string{"main", `[ "$GONBATCH_RESTARTS" = 1 ] || { echo 'panic: no such file'; exit 2; }; echo 'bad licence'; exit 3`})
	runner := Runner{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}}
	if err := runner.Run(t.Context(), staged(t, spec)); err == nil || !strings.Contains(err.Error(), "rank 0: panic: no such file") {
		t.Errorf("the first start: %v", err)
	}
	err := runner.Run(t.Context(), staged(t, spec))
	if err == nil || !strings.Contains(err.Error(), "bad licence") || strings.Contains(err.Error(), "panic") || strings.Contains(err.Error(), "in a row") {
		t.Errorf("the second start: %v", err)
	}
}

// TestDeathOfSeveralRanks: the other ranks are gone when the next start begins.
func TestDeathOfSeveralRanks(t *testing.T) {
	for _, mpi := range []string{"mpirun.mpich", noMPI} {
		spec := newSpec(t, 2, [2]string{"train", fmt.Sprintf(dying, "60")})
		spec.MaxRestarts = 1
		var errOut bytes.Buffer
		err := Runner{Out: &bytes.Buffer{}, Err: &errOut, LookPath: lookOnly(mpi)}.Run(t.Context(), staged(t, spec))
		if n, countErr := rundir.CountStarts(spec.RunDir); n != 2 || countErr != nil || !strings.Contains(errOut.String(), "start 2 resumes from its newest checkpoint\n") {
			t.Errorf("%s: %d starts, %v, %v\n%s", mpi, n, countErr, err, &errOut)
		}
	}
}

// TestUserEnvironment: the user's variables reach the programs of several ranks unchanged, whatever
// their names.
func TestUserEnvironment(t *testing.T) {
	const odd = "sp ace 'q' \"d\" $(x) `y` \\ é网\nline two"
	for _, mpi := range []string{"mpirun.openmpi", "mpirun.mpich", noMPI} {
		spec := newSpec(t, 2, [2]string{"print", `printf '%s|' "$rank" "$program" "$code" "$woken" "$ODD" "$HOME"`})
		spec.Env = map[string]string{"rank": "r", "program": "p", "code": "c", "woken": "", "ODD": odd, "HOME": "/dev/null/none", "PATH": "/odd path"}
		var errOut bytes.Buffer
		if err := (Runner{Out: &bytes.Buffer{}, Err: &errOut, LookPath: lookOnly(mpi)}).Run(t.Context(), staged(t, spec)); err != nil {
			t.Fatalf("%s: %v\n%s", mpi, err, &errOut)
		}
		for rank := range 2 {
			if got, want := read(t, spec.RunDir.RankLog(rank)), "r|p|c||"+odd+"|/dev/null/none|"; got != want {
				t.Errorf("%s, rank %d: %q, want %q", mpi, rank, got, want)
			}
		}
	}
}
