package slurm

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestIgnoredOptions(t *testing.T) {
	got := ignoredOptions([]string{"A=1", "SBATCH_TIMELIMIT=5", "SBATCH_PARTITION=p", "SBATCH_WAIT=1", "SBATCH_QOS=", "SLURM_JOB_ID=1"})
	want := []ignoredOption{{"SBATCH_PARTITION=p", "--partition=p"}, {"SBATCH_TIMELIMIT=5", "--time=5"}, {"SBATCH_WAIT=1", ""}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
