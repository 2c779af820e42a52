package cluster_test

import (
	"strings"
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

// TestAlone: no launcher is found in what is left, whichever has been there.
func TestAlone(t *testing.T) {
	stays := []string{"PATH=/bin", "SLURM_JOB_ID=1", "SLURM_CPUS_PER_TASK=2", "SLURM_ARRAY_TASK_ID=3", "OMPI_MCA_btl=tcp", "PBS_JOBID=4"}
	given := append(stays, "RANK=1", "WORLD_SIZE=4", "LOCAL_RANK=1", "MASTER_ADDR=h", "TORCHELASTIC_RUN_ID=r", "OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=4", "PMI_RANK=1", "PMI_SIZE=4", "PMIX_RANK=1", "PMIX_NAMESPACE=n", "PMIX_SERVER_URI4=u", "SLURM_PROCID=1", "SLURM_STEP_ID=0")
	left := cluster.Alone(given)
	if diff := cmp.Diff(stays, left); diff != "" {
		t.Error(diff)
	}
	environment, err := cluster.Detect(func(name string) string {
		for _, v := range left {
			if value, ok := strings.CutPrefix(v, name+"="); ok {
				return value
			}
		}
		return ""
	})
	if err != nil || environment.Size != 1 {
		t.Errorf("%v, %v", environment, err)
	}
}

func TestSetter(t *testing.T) {
	for name, want := range map[string]string{"SLURM_CONF": "SLURM", "SRUN_X": "SLURM", "PBS_JOBID": "PBS", "PMI_RANK": "the MPI launcher", "SQUEUE_FORMAT": "", "OMPI_MCA_btl": "", "HOME": ""} {
		if got := cluster.Setter(name); got != want {
			t.Errorf("Setter(%q) = %q, want %q", name, got, want)
		}
	}
}
