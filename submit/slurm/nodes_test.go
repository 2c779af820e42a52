package slurm

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gonbatch/submit"
)

const (
	partitions = "PartitionName=main AllowGroups=ALL Default=YES MaxNodes=UNLIMITED MaxTime=01:00:00 Nodes=n[1-3] State=UP TotalNodes=3\n" +
		"PartitionName=long AllowGroups=physics MaxMemPerNode=500 Default=NO MaxNodes=2 MaxTime=UNLIMITED Nodes=(null) State=DRAIN TotalNodes=0\n\n"
	nodes = "NodeName=n1 Arch=x86_64 CPUAlloc=10 CPUEfctv=62 CPUTot=64 AvailableFeatures=ib,a100 ActiveFeatures=ib,a100 Gres=gpu:a100:4(S:0-1),nvme:1 GresDrain=N/A GresUsed=gpu:a100:1(IDX:2),nvme:0 " +
		"OS=Linux 6.1 #1 SMP RealMemory=512000 AllocMem=64000 FreeMem=1 Sockets=2 State=IDLE+CLOUD+POWERED_DOWN Partitions=main,long  CfgTRES=cpu=62,mem=500G AllocTRES=cpu=10 Comment=State=DOWN\n" +
		"NodeName=n2 CPUAlloc=0 CPUTot=8 ActiveFeatures=(null) Gres=(null) GresUsed=gpu:0 RealMemory=2000 AllocMem=0 State=IDLE+DRAIN Partitions=main Reason=Not responding [root@2026]\n"
)

// TestCluster: SLURM's records become partitions and nodes, with what is free.
func TestCluster(t *testing.T) {
	s := New(submit.Shell{Runner: &fake{t: t, answers: map[string]answer{
		"scontrol --all --oneliner show partition": {out: partitions}, "scontrol --all --oneliner --details show node": {out: nodes},
	}}})
	got, err := s.Cluster(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := submit.Cluster{
		Partitions: []submit.Partition{{Name: "main", Default: true, Up: true, Nodes: 3, MaxTime: "01:00:00"}, {Name: "long", Restricted: true, MaxNodes: 2, MaxMemory: 500}},
		Nodes: []submit.Node{
			{Name: "n1", Partitions: []string{"main", "long"}, Usable: true, CPUs: 62, FreeCPUs: 52, Memory: 512000, FreeMemory: 448000,
				GPUs: map[string]int{"a100": 4}, FreeGPUs: map[string]int{"a100": 3}, Features: []string{"ib", "a100"}},
			{Name: "n2", Partitions: []string{"main"}, CPUs: 8, FreeCPUs: 8, Memory: 2000, FreeMemory: 2000, GPUs: map[string]int{}, FreeGPUs: map[string]int{"": 0}, Features: []string{}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// testOnly answers sbatch --test-only, whatever the script.
type testOnly struct {
	out string
	err error
}

func (a testOnly) Run(context.Context, string, ...string) ([]byte, error) {
	return []byte(a.out), a.err
}

// TestExpect reads sbatch's answers to --test-only.
func TestExpect(t *testing.T) {
	failed := commandError("sbatch", "")
	for _, tc := range []struct {
		name string
		says testOnly
		want submit.Expectation
		err  error
	}{
		{name: "a start", says: testOnly{out: "sbatch: Job 3 to start at 2026-11-30T20:59:27 using 8 processors on nodes n[1-2] in partition main\n"},
			want: submit.Expectation{Start: time.Date(2026, 11, 30, 20, 59, 27, 0, time.Local), Nodes: "n[1-2]", Partition: "main"}},
		{name: "not as things are", says: testOnly{"allocation failure: Requested node configuration is not available\n", failed}, err: submit.Refusal{Reason: "Requested node configuration is not available"}},
		{name: "never", says: testOnly{"sbatch: error: invalid partition specified: x\nallocation failure: Invalid partition name specified\n", failed}, err: submit.Refusal{Reason: "Invalid partition name specified", Final: true}},
		{name: "never, in SLURM's words", says: testOnly{out: "sbatch: Job 3 to start at 3387-11-30T20:59:27 using 8 processors on nodes n1 in partition main\n"}, err: submit.Refusal{Reason: "SLURM expects it never to start"}},
		{name: "options that don't fit", says: testOnly{"sbatch: error: invalid number of nodes (-N 2-1)\n", failed}, err: submit.Refusal{Reason: "invalid number of nodes (-N 2-1)", Final: true}},
		{name: "a closed partition", says: testOnly{"allocation failure: Required partition not available (inactive or drain)\n", failed}, err: submit.Refusal{Reason: "Required partition not available (inactive or drain)", Final: true}},
		{name: "no configuration", says: testOnly{"sbatch: error: s_p_parse_file: cannot stat file /nowhere/slurm.conf: No such file or directory, retrying in 1sec up to 60sec\n", failed}, err: failed},
		{name: "no answer", says: testOnly{"sbatch: error: Unable to contact slurm controller\n", failed}, err: failed},
	} {
		t.Run(tc.name, func(t *testing.T) {
			spec := submit.JobSpec{Name: "x", Nodes: 1, TasksPerNode: 1, Cells: minimal().Cells, RunDir: minimal().RunDir}
			got, err := New(submit.Shell{Runner: tc.says, Now: func() time.Time { return time.Date(2026, 11, 30, 20, 0, 0, 0, time.Local) }}).Expect(t.Context(), spec)
			if got != tc.want || !errors.Is(err, tc.err) {
				t.Errorf("%+v, %v; want %+v, %v", got, err, tc.want, tc.err)
			}
		})
	}
}
