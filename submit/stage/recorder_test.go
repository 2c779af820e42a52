package stage

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gonbatch/internal/rundir"
	"gonbatch/submit"
)

// TestRecorderIsGone: a submit command that was deleted while it ran says so.
func TestRecorderIsGone(t *testing.T) {
	draft, err := rundir.NewDraft(t.Context(), t.TempDir(), "x", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	gone := filepath.Join(t.TempDir(), "submit")
	err = Prepared{}.stageSubmit(submit.Shell{Self: gone}, draft.Dir)
	if err == nil || !strings.Contains(err.Error(), gone+" was deleted or moved while it ran") {
		t.Error(err)
	}
	if err := draft.Discard(); err != nil {
		t.Error(err)
	}
}
