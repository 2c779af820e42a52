package cluster_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"gonbatch/internal/cluster"
)

func TestOutside(t *testing.T) {
	stays := []string{"PATH=/bin", "SLURM_CONF=/etc/s", "SLURM_CONF_SERVER=h", "SLURM_CLUSTERS=a", "SLURM_JWT=t", "API_KEY=k", "PMIX_MCA_gds=hash", "OMPI_MCA_btl=tcp", "PMI_MMAP_SYNC_WAIT_TIME=300", "SLURM_ROOT=/opt/slurm", "PBS_SERVER=h"}
	given := append(stays, "SLURM_CPU_BIND=x", "SLURM_JOB_ID=1", "SBATCH_TIMELIMIT=5", "SQUEUE_FORMAT=%i", "SCANCEL_STATE=PENDING", "SLURM_TIME_FORMAT=x", "PMI_RANK=1", "PMIX_RANK=1", "OMPI_COMM_WORLD_SIZE=2", "PBS_NODEFILE=/n")
	if diff := cmp.Diff(stays, cluster.Outside(given)); diff != "" {
		t.Error(diff)
	}
}

func TestSetter(t *testing.T) {
	for name, want := range map[string]string{"SLURM_CONF": "SLURM", "SRUN_X": "SLURM", "PBS_JOBID": "PBS", "PMI_RANK": "the MPI launcher", "SQUEUE_FORMAT": "", "OMPI_MCA_btl": "", "HOME": ""} {
		if got := cluster.Setter(name); got != want {
			t.Errorf("Setter(%q) = %q, want %q", name, got, want)
		}
	}
}
