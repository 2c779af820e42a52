package run

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gonbatch/checkpoint/folder"
	"gonbatch/internal/rundir"
	"gonbatch/submit"
	"gonbatch/submit/report"
)

// TestProgress: a report has the run's restarts, its finished cells, and the newest checkpoint of
// all training runs.
func TestProgress(t *testing.T) {
	dir, err := rundir.Create(filepath.Join(t.TempDir(), "odd [a]* "), "x", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	progress := func() (view report.Run) {
		if err := errors.Join(addCounts(&view, Run{Dir: dir, Manifest: rundir.Manifest{Cells: make([]rundir.Cell, 2)}}), addCheckpoint(&view, dir)); err != nil {
			t.Fatal(err)
		}
		return view
	}
	if diff := cmp.Diff(report.Run{Cells: report.Cells{All: 2}}, progress()); diff != "" {
		t.Errorf("a new run: %s", diff)
	}
	for range 3 {
		if _, err := rundir.AddStart(dir, "local"); err != nil {
			t.Fatal(err)
		}
	}
	if err := rundir.MarkFinished(dir, "prepare", 1); err != nil {
		t.Fatal(err)
	}
	for i, root := range []string{filepath.Join(dir.Checkpoints(), "first"), filepath.Join(dir.Checkpoints(), "train", "second")} {
		time.Sleep(2 * time.Millisecond) // Checkpoints are timed to the millisecond.
		draft, err := folder.NewDraft(root, int64(40-i))
		if err != nil {
			t.Fatal(err)
		}
		if err := draft.Write("weights", func(w io.Writer) error { _, err := io.WriteString(w, "w"); return err }); err != nil {
			t.Fatal(err)
		}
		if err := draft.Commit(folder.Manifest{}); err != nil {
			t.Fatal(err)
		}
	}
	got := progress()
	if got.Checkpoint == nil || got.Checkpoint.Time.IsZero() {
		t.Fatalf("checkpoint %+v", got.Checkpoint)
	}
	got.Checkpoint.Time = time.Time{}
	want := report.Run{
		Restarts: 2, Cells: report.Cells{All: 2, Finished: 1},
		Checkpoint: &report.Checkpoint{Update: 39, Folder: filepath.Join(dir.Checkpoints(), "train", "second")},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// silent is a scheduler that never answers.
type silent struct {
	submit.Scheduler
	err error
}

func (s silent) Status(context.Context, submit.Job) (submit.Status, error) {
	return submit.Status{}, s.err
}

// TestReportWithoutAnswer: if the scheduler doesn't answer, a report has what the run directory
// knows; if it never will, or if the user has given up, there is only the error.
func TestReportWithoutAnswer(t *testing.T) {
	dir, err := rundir.Create(t.TempDir(), "x", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := rundir.MarkFinished(dir, "prepare", 1); err != nil {
		t.Fatal(err)
	}
	late := errors.New("scontrol did not answer in time\nat all")
	report := func(ctx context.Context, err error) (report.Run, error) {
		return (&Runs{}).Report(ctx, Run{Dir: dir, Manifest: rundir.Manifest{JobID: "7", Cells: make([]rundir.Cell, 2)}, Scheduler: silent{err: err}})
	}
	r, err := report(t.Context(), late)
	if err != nil || r.State != "unknown" || r.Ended || r.Message != "unknown: scontrol did not answer in time" || r.Error == "" || r.Cells.Finished != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := report(t.Context(), submit.Unanswerable{Err: late}); !errors.Is(err, late) {
		t.Errorf("a scheduler that will never answer: %v", err)
	}
	ended, stop := context.WithCancel(t.Context())
	stop()
	if _, err := report(ended, late); !errors.Is(err, late) {
		t.Errorf("the user has given up: %v", err)
	}
}
