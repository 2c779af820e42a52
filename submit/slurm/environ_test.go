package slurm

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEnviron(t *testing.T) {
	given := []string{"PATH=/bin", "SLURM_CONF=/etc/s", "SLURM_CONF_SERVER=h", "SLURM_CLUSTERS=a", "SLURM_JWT=t", "API_KEY=k", "PMIX_MCA_gds=hash", "OMPI_MCA_btl=tcp",
		"SLURM_CPU_BIND=x", "SLURM_JOB_ID=1", "SBATCH_TIMELIMIT=5", "SQUEUE_FORMAT=%i", "SCANCEL_STATE=PENDING", "SLURM_TIME_FORMAT=x", "PMI_RANK=1", "PMIX_RANK=1", "OMPI_COMM_WORLD_SIZE=2"}
	if diff := cmp.Diff(given[:8], Environ(given)); diff != "" {
		t.Error(diff)
	}
}

func TestIgnoredOptions(t *testing.T) {
	got := IgnoredOptions([]string{"A=1", "SBATCH_TIMELIMIT=5", "SBATCH_PARTITION=p", "SBATCH_WAIT=1", "SBATCH_QOS=", "SLURM_JOB_ID=1"})
	want := []Ignored{{"SBATCH_PARTITION=p", "--partition=p"}, {"SBATCH_TIMELIMIT=5", "--time=5"}, {"SBATCH_WAIT=1", ""}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
