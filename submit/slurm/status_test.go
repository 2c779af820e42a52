package slurm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gonbatch/internal/rundir"
	"gonbatch/submit"
)

// execFake returns a Runner that runs shell scripts instead of SLURM's commands.
func execFake(t *testing.T, commands map[string]string) submit.Runner {
	t.Helper()
	bin := t.TempDir()
	for name, text := range commands {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	return submit.ExecRunner{}
}

// shown returns scontrol 22.05's output for a run's job.
func shown(dir rundir.Dir, id, state, reason, exit string) string {
	return named(dir, id, "x", state, reason, exit)
}

func named(dir rundir.Dir, id, name, state, reason, exit string) string {
	return "JobId=" + id + " JobName=" + name + "\n   UserId=ada(1000) GroupId=ada(1000) MCS_label=N/A\n   Priority=1 Nice=0 Account=(null) QOS=(null)\n" +
		"   JobState=" + state + " Reason=" + reason + " Dependency=(null)\n   Requeue=1 Restarts=2 BatchFlag=1 Reboot=0 ExitCode=" + exit + "\n" +
		"   ReqNodeList=(null) ExcNodeList=(null)\n   NodeList=n[1-2]\n   BatchHost=n1\n" +
		"   Command=" + dir.Script() + "\n   WorkDir=/home/ada\n   StdErr=" + dir.SchedulerLog() + "\n   StdIn=/dev/null\n   StdOut=" + dir.SchedulerLog() + "\n   Power=\n"
}

func TestStatus(t *testing.T) {
	dir := rundir.At(t.TempDir())
	for _, tc := range []struct {
		name, out string
		want      submit.Status
	}{
		{"running", shown(dir, "12", "RUNNING", "None", "0:0"), submit.Status{State: submit.Running, Raw: "RUNNING", Restarts: 2, Nodes: "n[1-2]"}},
		{"just ending", shown(dir, "12", "COMPLETING", "None", "0:0"), submit.Status{State: submit.Running, Raw: "COMPLETING", Ending: true, Restarts: 2, Nodes: "n[1-2]"}},
		{"pending forever", shown(dir, "12", "PENDING", "DependencyNeverSatisfied", "0:0"), submit.Status{State: submit.Pending, Raw: "PENDING", Restarts: 2, Nodes: "n[1-2]",
			Reason: "DependencyNeverSatisfied", Explanation: "waits for a job that has failed, so it will never start; cancel it with `submit cancel`"}},
		{"a reason in words", shown(dir, "12", "PENDING", "Nodes_required_for_job_are_DOWN,_DRAINED_or_reserved_for_jobs_in_higher_priority_partitions", "0:0"), submit.Status{State: submit.Pending, Raw: "PENDING", Restarts: 2, Nodes: "n[1-2]",
			Reason: "Nodes_required_for_job_are_DOWN,_DRAINED_or_reserved_for_jobs_in_higher_priority_partitions", Explanation: "nodes that it needs are down, drained or reserved; it starts once they are back"}},
		{"a reason with details", shown(dir, "12", "PENDING", "ReqNodeNotAvail,_UnavailableNodes:n3", "0:0"), submit.Status{State: submit.Pending, Raw: "PENDING", Restarts: 2, Nodes: "n[1-2]",
			Reason: "ReqNodeNotAvail,_UnavailableNodes:n3", Explanation: "nodes that it needs are down, drained or reserved"}},
		{"node failed with exit code 0", shown(dir, "12", "NODE_FAIL", "NodeDown", "0:0"), submit.Status{State: submit.NodeFailed, Raw: "NODE_FAIL", Restarts: 2, Nodes: "n[1-2]",
			Reason: "NodeDown", Explanation: "a node that it needs is down"}},
		{"cancelled", shown(dir, "12", "CANCELLED", "None", "0:15"), submit.Status{State: submit.Cancelled, Raw: "CANCELLED", Restarts: 2, Nodes: "n[1-2]", Signal: 15}},
		{"a name that lies", named(dir, "12", "x JobState=COMPLETED Reason=None Requeue=0 ExitCode=0:0", "FAILED", "None", "3:0"),
			submit.Status{State: submit.Failed, Raw: "FAILED", Restarts: 2, Nodes: "n[1-2]", ExitCode: 3}},
		{"told to stop", shown(dir, "12", "FAILED", "NonZeroExitCode", "75:0"), submit.Status{State: submit.Stopped, Raw: "FAILED", Restarts: 2, Nodes: "n[1-2]", ExitCode: 75}},
		{"held at first", shown(dir, "12", "COMPLETED", "JobHeldAdmin", "0:0"), submit.Status{State: submit.Completed, Raw: "COMPLETED", Restarts: 2, Nodes: "n[1-2]"}},
		{"a state of the future", shown(dir, "12", "TELEPORTED", "None", "0:0"), submit.Status{Raw: "TELEPORTED", Restarts: 2, Nodes: "n[1-2]"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			job := submit.Job{ID: "12", Dir: dir}
			got, err := New(submit.Shell{Runner: &fake{t: t, answers: map[string]answer{"scontrol show job 12": {out: tc.out}}}}).Status(t.Context(), job)
			if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
				t.Errorf("error %v, status %s", err, diff)
			}
			all := shown(rundir.At("/else"), "1", "FAILED", "None", "9:0") + "\n" + tc.out + "\n" + shown(rundir.At("/else"), "112", "FAILED", "None", "9:0")
			got, err = New(submit.Shell{Runner: &fake{t: t, answers: map[string]answer{"scontrol --all show job": {out: all}}}}).Survey(t.Context()).Status(t.Context(), job)
			if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
				t.Errorf("in a survey: error %v, status %s", err, diff)
			}
			// Another user's job has a comment that looks like the record of this one.
			all = shown(rundir.At("/else"), "1", "RUNNING", "None", "0:0") + "\n   Comment=\n" + shown(dir, "12", "NODE_FAIL", "None", "9:0") + "\n" + tc.out
			got, err = New(submit.Shell{Runner: &fake{t: t, answers: map[string]answer{"scontrol --all show job": {out: all}, "scontrol show job 12": {out: tc.out}}}}).Survey(t.Context()).Status(t.Context(), job)
			if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
				t.Errorf("with a comment that lies: error %v, status %s", err, diff)
			}
		})
	}
}

// TestSurveyAsksOnce: however many runs there are, a survey queries SLURM once, even if SLURM does
// not answer.
func TestSurveyAsksOnce(t *testing.T) {
	for _, a := range []answer{{out: ""}, {err: commandError("scontrol", "Unable to contact slurm controller")}} {
		f := &fake{t: t, answers: map[string]answer{"scontrol --all show job": a, "scontrol show config": config("here"), sacct: {err: commandError("sacct", noAccounting)}}}
		v := New(submit.Shell{Runner: f}).Survey(t.Context())
		for range 4 {
			status, err := v.Status(t.Context(), submit.Job{ID: "12", Dir: rundir.At(t.TempDir())})
			if (err == nil) != (a.err == nil) || err == nil && status.State != submit.Lost {
				t.Errorf("%+v, %v", status, err)
			}
		}
		if n := strings.Count(strings.Join(f.ran, "\n"), "show job"); n != 1 || len(f.ran) > 3 {
			t.Errorf("%q", f.ran)
		}
	}
}

// TestAccountsOfMany: accounting is asked about all forgotten jobs of a list at once.
func TestAccountsOfMany(t *testing.T) {
	dir := rundir.At(t.TempDir())
	submitted := time.Date(2026, 11, 21, 10, 15, 0, 0, time.Local)
	manifest := rundir.Manifest{Created: submitted, Submitted: &submitted}
	if err := manifest.Write(dir); err != nil {
		t.Fatal(err)
	}
	f := &fake{t: t, answers: map[string]answer{
		"scontrol --all show job": {out: ""}, "scontrol show config": config("here"),
		strings.ReplaceAll(sacct, "=12 ", "=12,13,14 "): {out: "12|TIMEOUT|0:0|2026-11-21T10:15:00\n14|FAILED|3:0|2026-11-21T10:15:00\n"},
		strings.ReplaceAll(sacct, "=12 ", "=15 "):       {out: "15|NODE_FAIL|0:0|2026-11-21T10:15:00\n"},
	}}
	jobs := []submit.Job{{ID: "12", Dir: dir}, {ID: "13", Dir: dir}, {ID: "14", Dir: dir}}
	v := New(submit.Shell{Runner: f}).Survey(t.Context(), jobs...)
	for i, want := range []submit.State{submit.TimedOut, submit.Lost, submit.Failed, submit.NodeFailed, submit.NodeFailed} {
		job := submit.Job{ID: submit.JobID(fmt.Sprint(min(12+i, 15))), Dir: dir}
		if status, err := v.Status(t.Context(), job); err != nil || status.State != want {
			t.Errorf("job %s: %+v, %v; want %s", job.ID, status, err, want)
		}
	}
	if n := strings.Count(strings.Join(f.ran, "\n"), "sacct"); n != 2 {
		t.Errorf("%q", f.ran)
	}
}

const (
	sacct        = "sacct --noheader --parsable2 --allocations --jobs=12 --format=JobID,State,ExitCode,Submit"
	noAccounting = "Slurm accounting storage is disabled"
	unknown      = "slurm_load_jobs error: Invalid job id specified"
)

// stepd returns the line that slurmstepd writes to the log of a job that SLURM ends.
func stepd(id, why string) string {
	return "slurmstepd-n1: error: *** JOB " + id + " ON n1 CANCELLED AT 2026-11-21T23:27:44" + why + " ***\n"
}

func TestStatusOfAForgottenJob(t *testing.T) {
	code := 9
	created := time.Date(2026, 11, 21, 10, 0, 0, 0, time.Local)
	tooLong := submit.Status{State: submit.TimedOut, Reason: "TimeLimit", Explanation: reasons["TimeLimit"], FailedRank: 1}
	inferredTooLong := tooLong
	inferredTooLong.Inferred = true
	lost := submit.Status{State: submit.Lost, Inferred: true, FailedRank: 1}
	said := func(state submit.State) submit.Status {
		return submit.Status{State: state, Inferred: true, FailedRank: 1}
	}
	for _, tc := range []struct {
		name, exitStatus, ending, log, account string
		manifest                               rundir.Manifest
		want                                   submit.Status
		explains                               string
	}{
		{name: "its script ended well", exitStatus: "12 0\n", want: submit.Status{State: submit.Completed}},
		{name: "its programs saved and stopped", exitStatus: "12 75\n", want: submit.Status{State: submit.Stopped, ExitCode: 75}},
		{name: "its script failed", exitStatus: "12 7\n", want: submit.Status{State: submit.Failed, ExitCode: 7, FailedRank: 1}},
		{name: "the record is another job's", exitStatus: "11 0\n", want: lost, explains: "LOG"},
		{name: "the manifest knows", manifest: rundir.Manifest{JobID: "12", State: "timed out", Reason: "TimeLimit", Explanation: reasons["TimeLimit"], ExitCode: &code},
			want: submit.Status{State: submit.TimedOut, Reason: "TimeLimit", Explanation: reasons["TimeLimit"], ExitCode: 9, FailedRank: 1}},
		{name: "the manifest only knew that it ran", manifest: rundir.Manifest{JobID: "12", State: "running"}, want: lost, explains: "LOG"},
		{name: "an older version called it lost", manifest: rundir.Manifest{JobID: "12", State: "lost"}, log: stepd("12", " DUE TO TIME LIMIT"), want: inferredTooLong},
		{name: "accounting knows", account: "12|TIMEOUT|0:0|2026-11-21T10:15:00\n", want: submit.Status{State: submit.TimedOut, Raw: "TIMEOUT", Reason: "TimeLimit", Explanation: reasons["TimeLimit"], FailedRank: 1}},
		{name: "accounting knows who", account: "12|CANCELLED by 1000|0:15|2026-11-21T10:15:00\n", want: submit.Status{State: submit.Cancelled, Raw: "CANCELLED by 1000", Signal: 15, FailedRank: 1}},
		{name: "accounting knows another's", account: "12|COMPLETED|0:0|2025-11-21T10:15:00\n", want: lost, explains: "LOG"},
		{name: "accounting knows nothing", account: "\n", want: lost, explains: "LOG"},
		{name: "accounting takes it for running", account: "12|RUNNING|0:0|2026-11-21T10:15:00\n", want: lost, explains: "LOG"},
		{name: "slurmstepd said that it was too long", log: stepd("12", " DUE TO TIME LIMIT"), want: inferredTooLong},
		{name: "slurmstepd said that it was cancelled", log: stepd("12", ""), want: said(submit.Cancelled), explains: "LOG"},
		{name: "slurmstepd said that it was preempted", log: stepd("12", " DUE TO PREEMPTION"), want: said(submit.Preempted), explains: "LOG"},
		{name: "slurmstepd said that a node failed", log: stepd("12", " DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS"), want: said(submit.NodeFailed), explains: "LOG"},
		{name: "slurmstepd said it of another job", log: stepd("11", ""), want: lost, explains: "LOG"},
		{name: "slurmstepd said it of an earlier start", log: stepd("12", " DUE TO PREEMPTION") + "gonbatch: job 12, start 2, on n1\n", want: lost, explains: "LOG"},
		{name: "the script was told of the limit", ending: "12 COMPLETING TimeLimit\n", want: inferredTooLong},
		{name: "the script was told to end", ending: "12 COMPLETING None\n", want: said(submit.Cancelled), explains: "LOG"},
		{name: "the script was told to save", ending: "12 RUNNING None\n", want: lost, explains: "LOG"},
		{name: "another job's script was told to end", ending: "11 COMPLETING TimeLimit\n", want: lost, explains: "LOG"},
		{name: "nothing", want: lost, explains: "LOG"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir, err := rundir.Create(t.TempDir(), "x", time.Now())
			if err != nil {
				t.Fatal(err)
			}
			for path, text := range map[string]string{dir.ExitStatus(): tc.exitStatus, dir.EndingPath(): tc.ending,
				dir.SchedulerLog(): schedulerLog + tc.log, dir.Starts(): "job 12 2026-11-21T10:15:00+0000 here\n"} {
				if text != "" {
					write(t, path, text)
				}
			}
			tc.manifest.Created = created
			if err := tc.manifest.Write(dir); err != nil {
				t.Fatal(err)
			}
			accounts := answer{out: tc.account}
			if tc.account == "" {
				accounts.err = commandError("sacct", noAccounting)
			}
			f := &fake{t: t, answers: map[string]answer{"scontrol show job 12": {err: commandError("scontrol", unknown)}, "scontrol show config": config("here"), sacct: accounts}}
			got, err := New(submit.Shell{Runner: f}).Status(t.Context(), submit.Job{ID: "12", Dir: dir})
			if tc.explains != "" {
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

// TestStatusOfAJobThatNeverStarted: a job that was cancelled while it waited has left no files.
func TestStatusOfAJobThatNeverStarted(t *testing.T) {
	f := &fake{t: t, answers: map[string]answer{"scontrol show job 12": {err: commandError("scontrol", unknown)}, "scontrol show config": config("here"),
		sacct: {err: commandError("sacct", noAccounting)}}}
	got, err := New(submit.Shell{Runner: f}).Status(t.Context(), submit.Job{ID: "12", Dir: rundir.At(t.TempDir())})
	if err != nil || got.State != submit.Lost || !got.Inferred || !strings.Contains(got.Explanation, "never started: it was cancelled while it waited") {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestStatusWithoutController: the status of a job that has recorded its end is known even if the
// controller does not answer.
func TestStatusWithoutController(t *testing.T) {
	dir := rundir.At(t.TempDir())
	f := &fake{t: t, answers: map[string]answer{"scontrol show job 12": {err: &submit.CommandError{Name: "scontrol", Err: context.DeadlineExceeded}}}}
	if _, err := New(submit.Shell{Runner: f}).Status(t.Context(), submit.Job{ID: "12", Dir: dir}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	write(t, dir.ExitStatus(), "12 0\n")
	if got, err := New(submit.Shell{Runner: f}).Status(t.Context(), submit.Job{ID: "12", Dir: dir}); err != nil || got.State != submit.Completed {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestReusedID: another run's job with the same id is left alone.
func TestReusedID(t *testing.T) {
	dir, foreign := rundir.At(t.TempDir()), rundir.At("/home/bob/runs/y")
	f := &fake{t: t, answers: map[string]answer{"scontrol show job 12": {out: shown(foreign, "12", "RUNNING", "None", "0:0")}, "scontrol show config": config("here"),
		sacct: {err: commandError("sacct", noAccounting)}}}
	job := submit.Job{ID: "12", Dir: dir}
	if got, err := New(submit.Shell{Runner: f}).Status(t.Context(), job); err != nil || got.State != submit.Lost {
		t.Errorf("%+v, %v", got, err)
	}
	if err := New(submit.Shell{Runner: f}).Cancel(t.Context(), job); err != nil { // scancel is not expected.
		t.Error(err)
	}
}

// TestRunByAnotherPath: a run's job is found even if its directory was reached through a link.
func TestRunByAnotherPath(t *testing.T) {
	dir := rundir.At(t.TempDir())
	write(t, dir.Script(), "#!/bin/sh\n")
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir.Path(), link); err != nil {
		t.Fatal(err)
	}
	f := &fake{t: t, answers: map[string]answer{"scontrol show job 12": {out: shown(dir, "12", "RUNNING", "None", "0:0")}}}
	if got, err := New(submit.Shell{Runner: f}).Status(t.Context(), submit.Job{ID: "12", Dir: rundir.At(link)}); err != nil || got.State != submit.Running {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestCancel(t *testing.T) {
	dir := rundir.At(t.TempDir())
	running := answer{out: shown(dir, "12", "RUNNING", "None", "0:0")}
	forgotten := answer{err: commandError("scontrol", unknown)}
	elsewhere := answer{err: commandError("scontrol", "scontrol: error: 'east' can't be reached now")}
	for _, tc := range []struct {
		name    string
		cluster string
		answers map[string]answer
		want    string
	}{
		{name: "cancelled", cluster: "here", answers: map[string]answer{"scontrol show job 12": running, "scancel 12": {}}},
		{name: "its cluster is not known", answers: map[string]answer{"scontrol show job 12": running, "scancel 12": {}}},
		{name: "ended already", cluster: "here", answers: map[string]answer{"scontrol show job 12": running,
			"scancel 12": {err: commandError("scancel", "scancel: error: Kill job error on job id 12: Job/step already completing or completed")}}},
		{name: "forgotten", cluster: "here", answers: map[string]answer{"scontrol show job 12": forgotten}},
		{name: "not allowed", cluster: "here", answers: map[string]answer{"scontrol show job 12": running, "scancel 12": {err: commandError("scancel", "Access/permission denied")}},
			want: "cancel job 12: scancel: Access/permission denied"},
		{name: "on another cluster", cluster: "east", answers: map[string]answer{"scontrol show job 12": forgotten, "scontrol --clusters=east show job 12": running, "scancel --clusters=east 12": {}}},
		{name: "on another cluster, which cannot be reached", cluster: "east", answers: map[string]answer{"scontrol show job 12": forgotten, "scontrol --clusters=east show job 12": elsewhere},
			want: "cancel job 12: job 12 is on the cluster east, and SLURM's commands on this machine ask the cluster here: use a login node of east, or set SLURM_CONF to its slurm.conf " +
				"(scontrol: scontrol: error: 'east' can't be reached now)"},
		{name: "on another cluster, where the id is another's", cluster: "east", answers: map[string]answer{
			"scontrol show job 12": {out: shown(rundir.At("/home/bob/y"), "12", "RUNNING", "None", "0:0")}, "scontrol --clusters=east show job 12": elsewhere},
			want: "cancel job 12: job 12 is on the cluster east, and SLURM's commands on this machine ask the cluster here: use a login node of east, or set SLURM_CONF to its slurm.conf " +
				"(scontrol: scontrol: error: 'east' can't be reached now)"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.answers["scontrol show config"] = config("here")
			f := &fake{t: t, answers: tc.answers}
			err := New(submit.Shell{Runner: f}).Cancel(t.Context(), submit.Job{ID: "12", Cluster: tc.cluster, Dir: dir})
			if fmt.Sprint(err) != orNil(tc.want) {
				t.Errorf("error %v, want %s", err, tc.want)
			}
			for line := range tc.answers {
				if strings.HasPrefix(line, "scancel") && f.ran[len(f.ran)-1] != line {
					t.Errorf("%q, want %q last", f.ran, line)
				}
			}
		})
	}
}

// TestFind: a run's job is found by its script, and a job that has not ended comes before one that
// has.
func TestFind(t *testing.T) {
	dir, foreign := rundir.At(t.TempDir()), rundir.At("/home/bob/y")
	jobs := "3|RUNNING|" + foreign.Script() + "\n5|PENDING|" + dir.Script() + "\n9|CANCELLED|" + dir.Script() + "\n"
	f := &fake{t: t, answers: map[string]answer{squeue(dir): {out: jobs}, "scontrol show config": config("here")}}
	v := New(submit.Shell{Runner: f}).Survey(t.Context())
	for _, tc := range []struct {
		except []string
		want   submit.JobID
	}{{nil, "5"}, {[]string{"5"}, "9"}, {[]string{"5", "9"}, ""}} {
		if got, err := v.Find(t.Context(), dir, tc.except); err != nil || got.ID != tc.want {
			t.Errorf("Find without %q = %+v, %v; want %q", tc.except, got, err, tc.want)
		}
	}
	live, err := v.Live(t.Context(), dir)
	if diff := cmp.Diff([]submit.Job{{ID: "5", Cluster: "here", Dir: dir}}, live, cmp.AllowUnexported(rundir.Dir{})); diff != "" || err != nil {
		t.Errorf("Live: %v, %s", err, diff)
	}
	if n := strings.Count(strings.Join(f.ran, "\n"), "squeue"); n != 1 {
		t.Errorf("squeue was asked %d times", n)
	}
}
