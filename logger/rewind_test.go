package logger

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestRewind: an earlier process recorded steps 1 to 4, and its successor resumes after step 2.
// Another training run shares the file.
func TestRewind(t *testing.T) {
	tests := []struct {
		name string
		open func(path, training string) (Logger, error)
		want string
	}{
		{"JSON lines", func(path, training string) (Logger, error) {
			l, err := NewJSONLines(path, Training(training))
			l.now = noon
			return l, err
		}, `{"loss":1,"step":1,"time":"T","training":"a"}
{"loss":2,"step":2,"time":"T","training":"a"}
{"loss":9,"step":9,"time":"T","training":"b"}
{"acc":7,"step":2,"time":"T","training":"a"}
{"acc":7,"loss":7,"step":3,"time":"T","training":"a"}
`},
		{"CSV", func(path, training string) (Logger, error) {
			l, err := NewCSV(path, Training(training))
			l.now = noon
			return l, err
		}, `step,time,training,loss,acc
1,T,a,1,
2,T,a,2,
9,T,b,9,
2,T,a,,7
3,T,a,7,7
`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "metrics")
			first, err := tt.open(path, "a")
			must(t, err)
			for step := range int64(4) {
				must(t, first.Scalars(step+1, map[string]float64{"loss": float64(step + 1)}))
			}
			must(t, first.Close())
			other, err := tt.open(path, "b")
			must(t, err, other.Scalars(9, map[string]float64{"loss": 9}), other.Close())

			second, err := tt.open(path, "a")
			must(t, err)
			m := NewMulti(MultiOptions{}, second)
			must(t, m.Rewind(2), m.Scalars(2, map[string]float64{"loss": 7}), m.Scalars(2, map[string]float64{"loss": 7, "acc": 7}))
			must(t, m.Scalars(3, map[string]float64{"loss": 7, "acc": 7}), m.Close())
			if got := strings.ReplaceAll(read(t, path), "2026-01-02T12:00:00Z", "T"); got != tt.want {
				t.Errorf("file:\n%s\nwant:\n%s", got, tt.want)
			}
		})
	}
}

func TestCurvesRewind(t *testing.T) {
	l, err := NewCurves(CurvesOptions{Dir: t.TempDir(), Every: time.Hour})
	must(t, err)
	for step := range int64(5) {
		must(t, l.Scalars(step, map[string]float64{"loss": 1}))
	}
	must(t, l.Rewind(2))
	if got := len(l.points["loss"]); got != 3 {
		t.Errorf("%d points are left of 5, want steps 0 to 2", got)
	}
}

// TestDeferred: a logger that can't be opened at first loses records, but no hyper-parameters.
func TestDeferred(t *testing.T) {
	clock := noon()
	down := errors.New("nobody answers")
	inner := &remembering{}
	tries := 0
	d := NewDeferred(func() (Logger, error) {
		if tries++; tries == 1 {
			return (*remembering)(nil), down
		}
		return inner, nil
	})
	d.now = func() time.Time { return clock }
	for _, err := range []error{d.Params(map[string]any{"lr": 0.1}), d.Scalars(1, nil), d.Rewind(0), d.Model("model", "x")} {
		if !errors.Is(err, down) {
			t.Errorf("%v, want that nobody answers", err)
		}
	}
	if tries != 1 {
		t.Errorf("%d tries within a minute, want 1", tries)
	}
	clock = clock.Add(retryInterval)
	must(t, d.Scalars(2, nil), d.Close())
	if tries != 2 || inner.params["lr"] != 0.1 || len(inner.steps) != 1 || inner.steps[0] != 2 {
		t.Errorf("%d tries, parameters %v, steps %v; want 2, lr, and step 2", tries, inner.params, inner.steps)
	}
}

// remembering keeps the hyper-parameters that it was given.
type remembering struct {
	broken
	params map[string]any
}

func (r *remembering) Params(params map[string]any) error { r.params = params; return nil }
