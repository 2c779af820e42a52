package estimate_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gonbatch/internal/forecast"
	"gonbatch/submit"
	"gonbatch/submit/estimate"
	"gonbatch/submit/report"
)

// glancer glances at a program, whose runs it counts.
type glancer struct {
	t       *testing.T
	known   estimate.Known
	program estimate.Program
	runs    string
}

func newGlancer(t *testing.T, body string) *glancer {
	t.Helper()
	g := &glancer{t: t, known: estimate.Known{Dir: filepath.Join(t.TempDir(), "forecasts")}, runs: filepath.Join(t.TempDir(), "runs")}
	g.program = program(t, "echo run >> "+g.runs+"\n"+body)
	g.program.Cell.SHA256, g.program.Limits = "12", estimate.Limits{Time: time.Minute, TimeFlag: "forecast"}
	return g
}

var worldOfH100 = forecast.World{Target: "h100", Nodes: 1, GPUsPerNode: 4}

func (g *glancer) glance(ctx context.Context, wait bool) (report.Forecast, error) {
	shell := submit.Shell{Environ: os.Environ()}
	return g.known.Glance(ctx, shell, g.program, worldOfH100, wait)
}

// wantRuns wants the program to have run so often.
func (g *glancer) wantRuns(want int) {
	g.t.Helper()
	text, err := os.ReadFile(g.runs)
	if err != nil && want > 0 {
		g.t.Fatal(err)
	}
	if got := strings.Count(string(text), "run\n"); got != want {
		g.t.Errorf("the program ran %d times, want %d", got, want)
	}
}

// TestGlance: a program runs if the user waits, and then no more; another one, or another world, is
// not known.
func TestGlance(t *testing.T) {
	g := newGlancer(t, "batch=40\n"+strings.ReplaceAll(answers, "batch=$(read_batch)\n", ""))
	if _, err := g.glance(t.Context(), false); !errors.Is(err, estimate.ErrSilent) {
		t.Errorf("nothing is known: got %v", err)
	}
	g.wantRuns(0)
	for _, wait := range []bool{true, false, true} {
		if r, err := g.glance(t.Context(), wait); err != nil || !r.Fits || r.Cell != "train" || r.Answer.Batch != 40 {
			t.Errorf("got %+v, %v", r, err)
		}
		g.wantRuns(1)
	}
	for _, change := range []func(*estimate.Program){
		func(p *estimate.Program) { p.Cell.SHA256 = "13" },
		func(p *estimate.Program) { p.Cell.Args = []string{"-batch", "3"} },
		func(p *estimate.Program) { p.Env = map[string]string{"A": "1"} },
		func(p *estimate.Program) { p.Cell.Env = map[string]string{"A": "1"} },
	} {
		other := *g
		change(&other.program)
		if _, err := other.glance(t.Context(), false); !errors.Is(err, estimate.ErrSilent) {
			t.Errorf("%+v is known: %v", other.program, err)
		}
	}
}

// TestGlanceFails: a program that gives no forecast is asked again only if it has more time, and
// the user learns why.
func TestGlanceFails(t *testing.T) {
	for body, tt := range map[string]struct {
		time time.Duration
		want string
	}{
		"exit 3":        {time.Minute, "failed before its first training step: exit status 3"},
		"exec sleep 60": {time.Second, "in 1s; --forecast gives it more time"},
	} {
		g := newGlancer(t, body)
		g.program.Time = tt.time
		if _, err := g.glance(t.Context(), true); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", body, err, tt.want)
		}
		if _, err := g.glance(t.Context(), true); !errors.Is(err, estimate.ErrSilent) {
			t.Errorf("%s, again: got %v", body, err)
		}
		g.wantRuns(1)
		g.program.Time += time.Second
		if _, err := g.glance(t.Context(), false); !errors.Is(err, estimate.ErrSilent) {
			t.Errorf("%s, with more time, but nobody waits: got %v", body, err)
		}
		g.wantRuns(1)
		if _, err := g.glance(t.Context(), true); err == nil || errors.Is(err, estimate.ErrSilent) {
			t.Errorf("%s, with more time: got %v", body, err)
		}
		g.wantRuns(2)
	}
}

// TestGlanceUnsearched: a step that does not fit is reported, though the search for a batch that
// fits comes to no end.
func TestGlanceUnsearched(t *testing.T) {
	g := newGlancer(t, `[ -z "$(read_batch)" ] || exit 3`+"\n"+answers)
	r, err := g.glance(t.Context(), true)
	if err != nil || r.Fits || r.Refused() == nil || !strings.Contains(r.Refused().Error(), "submit check --target h100 finds the largest batch") {
		t.Errorf("got %+v, %v, %v", r, err, r.Refused())
	}
}

// TestGlanceInterrupted: a user who does not want to wait may want to next time.
func TestGlanceInterrupted(t *testing.T) {
	g := newGlancer(t, "exec sleep 60")
	ctx, cancel := context.WithCancel(t.Context())
	timer := time.AfterFunc(500*time.Millisecond, cancel)
	defer timer.Stop()
	if _, err := g.glance(ctx, true); !errors.Is(err, estimate.ErrSilent) {
		t.Errorf("got %v", err)
	}
	if all, _ := filepath.Glob(filepath.Join(g.known.Dir, "*")); len(all) > 0 {
		t.Errorf("known: %q", all)
	}
}

// TestKnownEnds: what is known is forgotten after a time, and a damaged entry is passed over.
func TestKnownEnds(t *testing.T) {
	g := newGlancer(t, "exit 3")
	entry := func() string {
		t.Helper()
		if err := g.known.Keep(g.program, worldOfH100, report.Forecast{Cell: "train", Fits: true}, nil); err != nil {
			t.Fatal(err)
		}
		all, err := filepath.Glob(filepath.Join(g.known.Dir, "*.json"))
		if err != nil || len(all) != 1 {
			t.Fatalf("%q, %v", all, err)
		}
		return all[0]
	}
	path := entry()
	if err := os.WriteFile(path, []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := g.glance(t.Context(), false); !errors.Is(err, estimate.ErrSilent) {
		t.Errorf("a damaged entry: %v", err)
	}
	old := time.Now().AddDate(0, -2, 0)
	if err := os.Chtimes(entry(), old, old); err != nil {
		t.Fatal(err)
	}
	if _, err := g.glance(t.Context(), false); !errors.Is(err, estimate.ErrSilent) {
		t.Errorf("an old entry: %v", err)
	}
	g.program.Cell.SHA256 = "13"
	entry() // Removes the old one, or finds two.
}
