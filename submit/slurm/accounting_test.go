package slurm

import (
	"os"
	"testing"
	"time"

	"gonbatch/internal/rundir"
	"gonbatch/submit"
)

// TestAccountOfARequeuedJob: SLURM's submission time of a job is the time of its last requeue. A
// later time belongs to another job with the same id.
func TestAccountOfARequeuedJob(t *testing.T) {
	submitted := time.Date(2026, 11, 21, 10, 0, 0, 0, time.Local)
	const day = 24 * time.Hour
	for _, tc := range []struct {
		name         string
		accounted    time.Duration
		lastLogEntry time.Duration
		want         submit.State
	}{
		{name: "never queued again", want: submit.Cancelled},
		{name: "cancelled before it began", accounted: time.Hour, want: submit.Cancelled},
		{name: "queued again after four days", accounted: 4 * day, lastLogEntry: 4 * day, want: submit.Cancelled},
		{name: "queued again, and ran for a week", accounted: 4 * day, lastLogEntry: 11 * day, want: submit.Cancelled},
		{name: "an earlier job", accounted: -2 * day, lastLogEntry: 4 * day, want: submit.Lost},
		{name: "a later job", accounted: 8 * day, lastLogEntry: 4 * day, want: submit.Lost},
		{name: "a later job, and it left no log", accounted: 8 * day, want: submit.Lost},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir, err := rundir.Create(t.TempDir(), "x", time.Now())
			if err != nil {
				t.Fatal(err)
			}
			if err := (rundir.Manifest{JobID: "12", Created: submitted, Submitted: &submitted}).Write(dir); err != nil {
				t.Fatal(err)
			}
			if tc.lastLogEntry != 0 {
				write(t, dir.SchedulerLog(), "gonbatch: job 12, start 1, on n1\n")
				if err := os.Chtimes(dir.SchedulerLog(), time.Time{}, submitted.Add(tc.lastLogEntry)); err != nil {
					t.Fatal(err)
				}
			}
			account := "12|CANCELLED by 1000|0:15|" + submitted.Add(tc.accounted).Format(sacctTime) + "\n"
			f := &fake{t: t, answers: map[string]answer{"scontrol show job 12": {err: commandError("scontrol", unknown)},
				"scontrol show config": config("here"), sacct: {out: account}}}
			got, err := New(submit.Shell{Runner: f}).Status(t.Context(), submit.Job{ID: "12", Dir: dir})
			if err != nil || got.State != tc.want {
				t.Errorf("%+v, %v; want %s", got, err, tc.want)
			}
		})
	}
}
