package slurm

import (
	"bytes"
	"testing"

	"gonbatch/submit"
)

const partitions = `PartitionName=main
   AllocNodes=ALL Default=YES QoS=N/A
   DefaultTime=00:10:00 DisableRootJobs=NO Hidden=NO
   MaxNodes=UNLIMITED MaxTime=01:00:00 MinNodes=0 LLN=NO MaxCPUsPerNode=UNLIMITED
   State=UP TotalCPUs=12 TotalNodes=3 SelectTypeParameters=NONE

PartitionName=long
   AllocNodes=ALL Default=NO QoS=N/A
   MaxNodes=2 MaxTime=UNLIMITED MinNodes=0
   State=UP TotalCPUs=800 TotalNodes=200 SelectTypeParameters=NONE
`

// TestWarnPartition: only a job that its partition can never start gets a warning.
func TestWarnPartition(t *testing.T) {
	const nodes, time = "so this one would wait forever; give fewer, or another --partition\n", "so this one would wait forever; give less, or another --partition\n"
	for _, tc := range []struct {
		spec submit.JobSpec
		err  error
		want string
	}{
		{spec: submit.JobSpec{Nodes: 3, Time: "60"}},
		{spec: submit.JobSpec{Nodes: 4}, want: "submit: warning: --nodes=4: a job in partition main gets at most 3 nodes, " + nodes},
		{spec: submit.JobSpec{Nodes: 1, Time: "1:00:01"}, want: "submit: warning: --time=1:00:01: a job in partition main gets at most 01:00:00, " + time},
		{spec: submit.JobSpec{Nodes: 2, Time: "UNLIMITED"}},
		{spec: submit.JobSpec{Nodes: 2, Time: "30-0", Partition: "long"}},
		{spec: submit.JobSpec{Nodes: 3, Partition: "long"}, want: "submit: warning: --nodes=3: a job in partition long gets at most 2 nodes, " + nodes},
		{spec: submit.JobSpec{Nodes: 1000, Partition: "main,long"}},
		{spec: submit.JobSpec{Nodes: 1000}, err: commandError("scontrol", "down")},
	} {
		var said bytes.Buffer
		s := New(submit.Shell{Err: &said, Runner: &fake{t: t, answers: map[string]answer{"scontrol show partition": {partitions, tc.err}}}})
		s.warnPartition(t.Context(), tc.spec)
		if said.String() != tc.want {
			t.Errorf("%+v: %q, want %q", tc.spec, &said, tc.want)
		}
	}
}
