package slurm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gonbatch/rundir"
	"gonbatch/submit"
)

// fake answers commands by their whole line; a command that it does not know fails the test.
type fake struct {
	t       *testing.T
	answers map[string]answer
	ran     []string
}

type answer struct {
	out string
	err error
}

func (f *fake) Run(_ context.Context, name string, args ...string) ([]byte, error) {
	line := strings.Join(append([]string{name}, args...), " ")
	f.ran = append(f.ran, line)
	a, ok := f.answers[line]
	if !ok {
		f.t.Errorf("unexpected command: %s", line)
	}
	return []byte(a.out), a.err
}

func commandError(name, output string) error {
	return &submit.CommandError{Name: name, Output: output, Err: errors.New("exit status 1")}
}

func TestSubmit(t *testing.T) {
	dir := rundir.At("/runs/a b")
	const line = "sbatch --parsable /runs/a b/job.sbatch"
	kept := "\nnothing is lost: all is staged in /runs/a b; queue it with: sbatch --parsable '/runs/a b/job.sbatch'"
	for _, tc := range []struct {
		name   string
		answer answer
		want   submit.Job
		err    string
	}{
		{name: "id", answer: answer{out: "33\n"}, want: submit.Job{ID: "33", Dir: dir}},
		{name: "id and cluster", answer: answer{out: "33;east\n"}, want: submit.Job{ID: "33", Cluster: "east", Dir: dir}},
		{name: "a site's own words first", answer: answer{out: "Welcome\n33\n"}, want: submit.Job{ID: "33", Dir: dir}},
		{name: "no id", answer: answer{out: "ok"}, err: `sbatch printed no job id but "ok"; the job may be queued (look with squeue); its run directory is /runs/a b`},
		{name: "refused", answer: answer{err: commandError("sbatch", "sbatch: error: invalid partition specified: nope")},
			err: "SLURM did not take the job: sbatch: sbatch: error: invalid partition specified: nope" + kept},
		{name: "missing", answer: answer{err: &submit.CommandError{Name: "sbatch", Err: exec.ErrNotFound}}, err: ErrNoSLURM.Error() + kept},
		{name: "no answer", answer: answer{err: &submit.CommandError{Name: "sbatch", Err: context.DeadlineExceeded}},
			err: "cannot queue the job: sbatch did not answer in time: is SLURM's controller up (scontrol ping)? The job may be queued (look with squeue before you repeat it)" + kept},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := New(&fake{t: t, answers: map[string]answer{line: tc.answer}})
			got, err := s.Submit(t.Context(), submit.JobSpec{RunDir: dir})
			if got != tc.want || fmt.Sprint(err) != orNil(tc.err) {
				t.Errorf("Submit = %+v, %v\nwant     %+v, %s", got, err, tc.want, tc.err)
			}
		})
	}
}

func orNil(text string) string {
	if text == "" {
		return "<nil>"
	}
	return text
}

// shown is what scontrol 22.05 prints of a job.
func shown(name, state, reason, exit string) string {
	return "JobId=12 JobName=" + name + "\n   UserId=ada(1000) GroupId=ada(1000) MCS_label=N/A\n   Priority=1 Nice=0 Account=(null) QOS=(null)\n" +
		"   JobState=" + state + " Reason=" + reason + " Dependency=(null)\n   Requeue=1 Restarts=2 BatchFlag=1 Reboot=0 ExitCode=" + exit + "\n" +
		"   ReqNodeList=(null) ExcNodeList=(null)\n   NodeList=n[1-2]\n   BatchHost=n1\n"
}

func TestStatus(t *testing.T) {
	for _, tc := range []struct {
		name, out string
		want      submit.Status
	}{
		{"running", shown("x", "RUNNING", "None", "0:0"), submit.Status{State: submit.Running, Raw: "RUNNING", Restarts: 2, Nodes: "n[1-2]"}},
		{"pending for ever", shown("x", "PENDING", "DependencyNeverSatisfied", "0:0"), submit.Status{State: submit.Pending, Raw: "PENDING", Restarts: 2, Nodes: "n[1-2]",
			Reason: "DependencyNeverSatisfied", Explanation: "waits for a job that has failed, so it will never start; cancel it with `submit cancel`"}},
		{"a reason with details", shown("x", "PENDING", "ReqNodeNotAvail,_UnavailableNodes:n3", "0:0"), submit.Status{State: submit.Pending, Raw: "PENDING", Restarts: 2, Nodes: "n[1-2]",
			Reason: "ReqNodeNotAvail,_UnavailableNodes:n3", Explanation: "nodes that it needs are down, drained or reserved"}},
		{"node failed with exit code 0", shown("x", "NODE_FAIL", "NodeDown", "0:0"), submit.Status{State: submit.NodeFailed, Raw: "NODE_FAIL", Restarts: 2, Nodes: "n[1-2]",
			Reason: "NodeDown", Explanation: "a node that it needs is down"}},
		{"cancelled", shown("x", "CANCELLED", "None", "0:15"), submit.Status{State: submit.Cancelled, Raw: "CANCELLED", Restarts: 2, Nodes: "n[1-2]", Signal: 15}},
		{"a name that lies", shown("x JobState=COMPLETED Reason=None Requeue=0 ExitCode=0:0", "FAILED", "None", "3:0"),
			submit.Status{State: submit.Failed, Raw: "FAILED", Restarts: 2, Nodes: "n[1-2]", ExitCode: 3}},
		{"told to stop", shown("x", "FAILED", "NonZeroExitCode", "75:0"), submit.Status{State: submit.Stopped, Raw: "FAILED", Restarts: 2, Nodes: "n[1-2]", ExitCode: 75}},
		{"a state of the future", shown("x", "TELEPORTED", "None", "0:0"), submit.Status{Raw: "TELEPORTED", Restarts: 2, Nodes: "n[1-2]"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := New(&fake{t: t, answers: map[string]answer{"scontrol show job 12": {out: tc.out}}})
			got, err := s.Status(t.Context(), submit.Job{ID: "12", Dir: rundir.At(t.TempDir())})
			if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
				t.Errorf("error %v, status %s", err, diff)
			}
		})
	}
}

func TestStatusOfAForgottenJob(t *testing.T) {
	code := 9
	for _, tc := range []struct {
		name, exitStatus string
		manifest         rundir.Manifest
		want             submit.Status
	}{
		{name: "its script ended well", exitStatus: "12 0\n", want: submit.Status{State: submit.Completed}},
		{name: "its programs saved and stopped", exitStatus: "12 75\n", want: submit.Status{State: submit.Stopped, ExitCode: 75}},
		{name: "its script failed", exitStatus: "12 7\n", want: submit.Status{State: submit.Failed, ExitCode: 7, FailedRank: 1}},
		{name: "the record is another job's", exitStatus: "11 0\n", want: submit.Status{State: submit.Lost, FailedRank: 1}},
		{name: "the manifest knows", manifest: rundir.Manifest{JobID: "12", State: "timed out", Reason: "TimeLimit", ExitCode: &code},
			want: submit.Status{State: submit.TimedOut, Reason: "TimeLimit", Explanation: reasons["TimeLimit"], ExitCode: 9, FailedRank: 1}},
		{name: "the manifest only knew that it ran", manifest: rundir.Manifest{JobID: "12", State: "running"}, want: submit.Status{State: submit.Lost, FailedRank: 1}},
		{name: "nothing", want: submit.Status{State: submit.Lost, FailedRank: 1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir, err := rundir.Create(t.TempDir(), "x", time.Now())
			if err != nil {
				t.Fatal(err)
			}
			if tc.exitStatus != "" {
				write(t, dir.ExitStatus(), tc.exitStatus)
			}
			write(t, dir.SchedulerLog(), schedulerLog)
			if err := tc.manifest.Write(dir); err != nil {
				t.Fatal(err)
			}
			forgot := answer{err: commandError("scontrol", "slurm_load_jobs error: Invalid job id specified")}
			got, err := New(&fake{t: t, answers: map[string]answer{"scontrol show job 12": forgot}}).Status(t.Context(), submit.Job{ID: "12", Dir: dir})
			if tc.want.State == submit.Lost {
				if !strings.Contains(got.Explanation, dir.SchedulerLog()) {
					t.Errorf("explanation %q does not name the log", got.Explanation)
				}
				got.Explanation = ""
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
				t.Errorf("error %v, status %s", err, diff)
			}
		})
	}
}

// schedulerLog has two steps: rank 0 was ended because of rank 1, and an earlier step's line must not count.
const schedulerLog = `srun: error: n9: task 8: Exited with exit code 1
gonbatch: step train on 2 ranks: /runs/x/bin/train
srun: error: n1: task 0: Terminated
srun: error: n2: tasks 1-3: Exited with exit code 7
`

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestCancel(t *testing.T) {
	job := submit.Job{ID: "12", Cluster: "east"}
	for _, tc := range []struct {
		name string
		err  error
		want string
	}{
		{name: "cancelled"},
		{name: "ended already", err: commandError("scancel", "scancel: error: Kill job error on job id 12: Job/step already completing or completed")},
		{name: "forgotten", err: commandError("scancel", "scancel: error: Kill job error on job id 12: Invalid job id specified")},
		{name: "not allowed", err: commandError("scancel", "Access/permission denied"), want: "cancel job 12: scancel: Access/permission denied"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := New(&fake{t: t, answers: map[string]answer{"scancel --clusters=east 12": {err: tc.err}}}).Cancel(t.Context(), job)
			if fmt.Sprint(err) != orNil(tc.want) {
				t.Errorf("error %v, want %s", err, tc.want)
			}
		})
	}
}

const mpiList = "MPI plugin types are...\n\tpmix\n\tnone\n\tcray_shasta\n\tpmi2\nspecific pmix plugin versions available: pmix_v4\n"

func TestFindMPI(t *testing.T) {
	for _, tc := range []struct {
		name      string
		spec      submit.JobSpec
		installed []string
		want      MPI
		err       string
	}{
		{name: "Open MPI", installed: []string{"libmpi.so.40", "libmpich.so.12"}, want: MPI{Kind: "pmix"}},
		{name: "MPICH", installed: []string{"libmpich.so.12"}, want: MPI{Kind: "pmi2"}},
		{name: "Intel MPI", installed: []string{"libmpi.so.12"}, want: MPI{Kind: "pmi2"}},
		{name: "a module's name counts before what is here", spec: submit.JobSpec{Modules: []string{"gcc/12", "mpich/4.1"}}, installed: []string{"libmpi.so.40"}, want: MPI{Kind: "pmi2"}},
		{name: "a given library", spec: submit.JobSpec{MPILibrary: "/opt/mpich/lib/libmpich.so.12"}, want: MPI{Kind: "pmi2", Library: "/opt/mpich/lib/libmpich.so.12"}},
		{name: "a given kind", spec: submit.JobSpec{MPI: "pmix_v4"}, want: MPI{Kind: "pmix_v4"}},
		{name: "both given", spec: submit.JobSpec{MPI: "pmi2", MPILibrary: "libx.so"}, want: MPI{Kind: "pmi2", Library: "libx.so"}},
		{name: "auto", spec: submit.JobSpec{MPI: "auto"}, installed: []string{"libmpi.so.40"}, want: MPI{Kind: "pmix"}},
		{name: "an unknown kind", spec: submit.JobSpec{MPI: "pmi9"}, err: `--mpi="pmi9": this cluster's srun has cray_shasta, none, pmi2, pmix, pmix_v4`},
		{name: "an unknown library", spec: submit.JobSpec{MPILibrary: "libx.so"}, err: `cannot tell which --mpi goes with the MPI library "libx.so"; give --mpi too: this cluster's srun has cray_shasta, none, pmi2, pmix, pmix_v4`},
		{name: "no MPI", err: "no MPI library was found here that works with this cluster's srun (--mpi: cray_shasta, none, pmi2, pmix, pmix_v4); load one with --module, or name it with --mpi and --mpi-library (Debian: apt install libopenmpi3, or libmpich12)"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.spec.Nodes, tc.spec.TasksPerNode = 2, 1
			installed := func(soname string) bool { return strings.Contains(strings.Join(tc.installed, " ")+" ", soname+" ") }
			got, err := New(&fake{t: t, answers: map[string]answer{"srun --mpi=list": {out: mpiList}}}).FindMPI(t.Context(), tc.spec, installed)
			if got != tc.want || fmt.Sprint(err) != orNil(tc.err) {
				t.Errorf("FindMPI = %+v, %v\nwant      %+v, %s", got, err, tc.want, tc.err)
			}
		})
	}
}

func TestOneTaskNeedsNoMPI(t *testing.T) {
	runner := &fake{t: t}
	got, err := New(runner).FindMPI(t.Context(), submit.JobSpec{Nodes: 1, TasksPerNode: 1}, nil)
	if err != nil || got.Kind != "none" || len(runner.ran) != 0 {
		t.Errorf("FindMPI = %+v, %v after %q", got, err, runner.ran)
	}
}
