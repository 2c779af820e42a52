package submit

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCleanEnviron(t *testing.T) {
	given := []string{"PATH=/bin", "SLURM_CONF=/etc/s", "SLURM_CONF_SERVER=h", "SLURM_CLUSTERS=a", "SLURM_JWT=t", "API_KEY=k", "PMIX_MCA_gds=hash", "OMPI_MCA_btl=tcp", "PMI_MMAP_SYNC_WAIT_TIME=300", "SLURM_ROOT=/opt/slurm",
		"SLURM_CPU_BIND=x", "SLURM_JOB_ID=1", "SBATCH_TIMELIMIT=5", "SQUEUE_FORMAT=%i", "SCANCEL_STATE=PENDING", "SLURM_TIME_FORMAT=x", "PMI_RANK=1", "PMIX_RANK=1", "OMPI_COMM_WORLD_SIZE=2"}
	if diff := cmp.Diff(given[:10], CleanEnviron(given)); diff != "" {
		t.Error(diff)
	}
}
