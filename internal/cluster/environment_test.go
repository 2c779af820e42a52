package cluster_test

import (
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"gonbatch/internal/bounded"
	"gonbatch/internal/cluster"
)

func TestDetect(t *testing.T) {
	batchScript := map[string]string{"SLURM_JOB_ID": "7", "SLURM_PROCID": "0", "SLURM_NTASKS": "4", "SLURM_LOCALID": "0"}
	step := map[string]string{"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0", "SLURM_PROCID": "3", "SLURM_NTASKS": "4", "SLURM_STEP_NUM_TASKS": "4", "SLURM_LOCALID": "1"}
	tests := []struct {
		name string
		vars []map[string]string
		want cluster.Environment
	}{
		{"nothing set", nil, cluster.Environment{Launcher: cluster.Single, Size: 1, LocalSize: 1}},
		{"batch script without srun", []map[string]string{batchScript}, cluster.Environment{Launcher: cluster.Single, Size: 1, LocalSize: 1, JobID: "7"}},
		{"srun", []map[string]string{step}, cluster.Environment{Launcher: cluster.Slurm, Rank: 3, Size: 4, LocalRank: 1, JobID: "7"}},
		{"CPUs of a task", []map[string]string{step, {"SLURM_CPUS_PER_TASK": "2"}}, cluster.Environment{Launcher: cluster.Slurm, Rank: 3, Size: 4, LocalRank: 1, CPUs: 2, JobID: "7"}},
		{"srun --mpi=pmi2", []map[string]string{step, {"PMI_RANK": "3", "PMI_SIZE": "4"}}, cluster.Environment{Launcher: cluster.PMI, Rank: 3, Size: 4, LocalRank: 1, JobID: "7"}},
		{"a step smaller than the job", []map[string]string{step, {"SLURM_STEP_NUM_TASKS": "2", "SLURM_PROCID": "1"}}, cluster.Environment{Launcher: cluster.Slurm, Rank: 1, Size: 2, LocalRank: 1, JobID: "7"}},
		{"mpirun of Open MPI in a SLURM job", []map[string]string{step, {"SLURM_NTASKS": "2", "OMPI_COMM_WORLD_RANK": "5", "OMPI_COMM_WORLD_SIZE": "8", "OMPI_COMM_WORLD_LOCAL_RANK": "1", "OMPI_COMM_WORLD_LOCAL_SIZE": "4"}},
			cluster.Environment{Launcher: cluster.OpenMPI, Rank: 5, Size: 8, LocalRank: 1, LocalSize: 4, JobID: "7"}},
		{"Hydra", []map[string]string{{"PMI_RANK": "1", "PMI_SIZE": "2", "MPI_LOCALRANKID": "1", "MPI_LOCALNRANKS": "2"}}, cluster.Environment{Launcher: cluster.PMI, Rank: 1, Size: 2, LocalRank: 1, LocalSize: 2}},
		{"torchrun", []map[string]string{{"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}}, cluster.Environment{Launcher: cluster.Torchrun, Rank: 1, Size: 2, LocalSize: 1, Master: "localhost:29500"}},
		{"torchrun on two nodes", []map[string]string{{"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "n1", "MASTER_PORT": "4000"}}, cluster.Environment{Launcher: cluster.Torchrun, Rank: 1, Size: 2, Master: "n1:4000"}},
		{"torchrun itself, whose agent has the port", []map[string]string{{"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "n1", "MASTER_PORT": "4000", "TORCHELASTIC_USE_AGENT_STORE": "True", "TORCHELASTIC_RUN_ID": "a1"}}, cluster.Environment{Launcher: cluster.Torchrun, Size: 2, Master: "n1:4001", RunID: "a1"}},
		{"submit --local", []map[string]string{variables(cluster.TorchrunVariables(1, 2, 4000, "mnist-1"))}, cluster.Environment{Launcher: cluster.Submit, Rank: 1, Size: 2, LocalRank: 1, LocalSize: 2, Master: "127.0.0.1:4000", RunID: "mnist-1"}},
		{"torchrun itself in a rank that submit started", []map[string]string{variables(cluster.TorchrunVariables(1, 2, 4000, "mnist-1")), {"TORCHELASTIC_RUN_ID": "a1", "MASTER_PORT": "4001"}}, cluster.Environment{Launcher: cluster.Torchrun, Rank: 1, Size: 2, LocalRank: 1, LocalSize: 2, Master: "127.0.0.1:4001", RunID: "a1"}},
		{"torchrun on each node of a job", []map[string]string{step, {"RANK": "6", "WORLD_SIZE": "8", "LOCAL_RANK": "2", "LOCAL_WORLD_SIZE": "4", "MASTER_ADDR": "n1", "TORCHELASTIC_RUN_ID": "a1"}},
			cluster.Environment{Launcher: cluster.Torchrun, Rank: 6, Size: 8, LocalRank: 2, LocalSize: 4, Master: "n1:29500", RunID: "a1", JobID: "7"}},
		{"a script that sets torchrun's variables in srun", []map[string]string{step, {"RANK": "3", "WORLD_SIZE": "4"}}, cluster.Environment{Launcher: cluster.Slurm, Rank: 3, Size: 4, LocalRank: 1, JobID: "7"}},
		{"srun --mpi=pmix", []map[string]string{step, {"PMIX_RANK": "3", "PMIX_NAMESPACE": "slurm.pmix.7.0"}}, cluster.Environment{Launcher: cluster.Slurm, Rank: 3, Size: 4, LocalRank: 1, JobID: "7"}},
		{"torchrun in a batch script", []map[string]string{batchScript, {"RANK": "1", "WORLD_SIZE": "2"}}, cluster.Environment{Launcher: cluster.Torchrun, Rank: 1, Size: 2, Master: "localhost:29500", JobID: "7"}},
		{"an empty variable", []map[string]string{{"PMI_RANK": "", "PMI_SIZE": "2"}}, cluster.Environment{Launcher: cluster.Single, Size: 1, LocalSize: 1}},
		{"PBS", []map[string]string{{"PBS_JOBID": "12.server"}}, cluster.Environment{Launcher: cluster.Single, Size: 1, LocalSize: 1, JobID: "12.server"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := cluster.Detect(lookup(test.vars...))
			if err != nil {
				t.Fatal(err)
			}
			if got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
			want := strconv.Itoa(got.Rank)
			if got.Launcher == cluster.Single {
				want = ""
			}
			if rank := shellRank(t, test.vars); rank != want {
				t.Errorf("the shell function finds rank %q, Detect %q", rank, want)
			}
		})
	}
}

// shellRank returns the rank that a script finds.
func shellRank(t *testing.T, vars []map[string]string) string {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", cluster.Shell()+"rank")
	cmd.Env = []string{}
	for _, group := range vars {
		for name, value := range group {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	out, err := bounded.CombinedOutput(cmd)
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return strings.TrimSpace(string(out))
}

func TestLocal(t *testing.T) {
	tests := []struct {
		name string
		env  cluster.Environment
		want bool
	}{
		{"loopback", cluster.Environment{Size: 2, Master: "127.0.0.1:29500"}, true},
		{"Debian's name of this machine is no loopback to others", cluster.Environment{Size: 2, Master: "n1:29500"}, false},
		{"localhost", cluster.Environment{Size: 2, Master: "localhost:29500"}, true},
		{"IPv6", cluster.Environment{Size: 2, Master: "[::1]:29500"}, true},
		{"all on one node", cluster.Environment{Size: 2, LocalSize: 2, Master: "n1:29500"}, true},
		{"some on this node", cluster.Environment{Size: 4, LocalSize: 2, Master: "10.0.0.1:29500"}, false},
	}
	for _, test := range tests {
		if got := test.env.Local(); got != test.want {
			t.Errorf("%s: local is %v, want %v", test.name, got, test.want)
		}
	}
}

func TestDetectRefuses(t *testing.T) {
	tests := []struct{ name, want string }{
		{"RANK=x WORLD_SIZE=2", `RANK is "x", not a number`},
		{"RANK=2 WORLD_SIZE=2", "rank 2 of 2"},
		{"RANK=-1 WORLD_SIZE=2", "rank -1 of 2"},
		{"RANK=0 WORLD_SIZE=0", "0 ranks"},
		{"RANK=0 WORLD_SIZE=2 LOCAL_RANK=3 LOCAL_WORLD_SIZE=2", "local rank 3 of 2"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			vars := map[string]string{}
			for _, pair := range strings.Fields(test.name) {
				name, value, _ := strings.Cut(pair, "=")
				vars[name] = value
			}
			_, err := cluster.Detect(lookup(vars))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want one with %q", err, test.want)
			}
		})
	}
}

// lookup returns a getenv over the maps; later ones take precedence.
func lookup(vars ...map[string]string) func(string) string {
	return func(name string) string {
		for i := len(vars) - 1; i >= 0; i-- {
			if value, ok := vars[i][name]; ok {
				return value
			}
		}
		return ""
	}
}

// variables returns variables of the form NAME=VALUE as a map.
func variables(list []string) map[string]string {
	all := map[string]string{}
	for _, text := range list {
		name, value, _ := strings.Cut(text, "=")
		all[name] = value
	}
	return all
}
