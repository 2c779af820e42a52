// Package loggertest is the contract of logger.Logger, as a suite of tests that every logger
// passes. How each format looks to its own readers is tested where those readers are.
//
//	loggertest.Run(t, loggertest.Kind{
//		Open: func(dir string) (logger.Logger, error) { return logger.NewCSV(filepath.Join(dir, "metrics.csv")) },
//		Loss: readTable,
//	})
package loggertest

import (
	"errors"
	"image"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"gonbatch/logger"
)

// Kind is a logger to test.
type Kind struct {
	// Open opens the logger in a folder, which exists. If it is opened there again, it continues
	// its record.
	Open func(dir string) (logger.Logger, error)
	// Loss reads the metric "loss" by step, after Close. It is nil if no reader is available.
	Loss func(t *testing.T, dir string) map[int64]float64
}

// Run tests a kind of logger.
func Run(t *testing.T, k Kind) {
	t.Run("every kind of record", k.everyRecord)
	t.Run("edge values", k.edgeValues)
	t.Run("several goroutines", k.goroutines)
	t.Run("the caller changes its values", k.callersValues)
	t.Run("continue", k.resume)
	t.Run("closed", k.closed)
}

func (k Kind) open(t *testing.T, dir string) logger.Logger {
	t.Helper()
	l, err := k.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// wantLoss checks the recorded metric "loss".
func (k Kind) wantLoss(t *testing.T, dir string, want map[int64]float64) {
	t.Helper()
	if k.Loss == nil {
		return
	}
	if got := k.Loss(t, dir); !maps.Equal(got, want) {
		t.Errorf("recorded %v, want %v", got, want)
	}
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
}

func (k Kind) everyRecord(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(t.TempDir(), "notes.txt")
	must(t, os.WriteFile(file, []byte("text"), 0o644))
	l := k.open(t, dir)
	must(t,
		l.Params(map[string]any{"lr": 0.5, "epochs": 3, "nesterov": true, "optimizer": "adam", "limit": time.Minute}),
		l.Scalars(1, map[string]float64{"loss": 0.5, "Mean Accuracy (#acc)": 1}),
		l.Scalars(1, nil),
		l.Image(1, "samples", image.NewGray(image.Rect(1, 1, 5, 4))),
		l.Histogram(1, "weights", []float64{-1, 0, 0.5, 2}),
		l.Artifact(file))
	_ = l.Artifact(filepath.Join(dir, "missing")) // With or without an error, the logger is still usable.
	must(t, l.Scalars(2, map[string]float64{"loss": 0.25}), l.Close())
	k.wantLoss(t, dir, map[int64]float64{1: 0.5, 2: 0.25})
}

func (k Kind) edgeValues(t *testing.T) {
	for name, values := range edgeValues {
		t.Run(name, func(t *testing.T) {
			done := make(chan struct{})
			l := k.open(t, t.TempDir())
			go func() {
				defer close(done)
				must(t, l.Params(map[string]any{"lr": values[0]}))
				for step, value := range values {
					must(t, l.Scalars(int64(step), map[string]float64{"val/loss": value}))
				}
				_ = l.Histogram(1, "weights", values) // Its error says what is not finite.
				must(t, l.Close())
			}()
			select {
			case <-done:
			case <-time.After(2 * time.Minute):
				t.Fatal("the logger does not return")
			}
		})
	}
}

func (k Kind) goroutines(t *testing.T) {
	dir := t.TempDir()
	l := k.open(t, dir)
	want := map[int64]float64{}
	var all sync.WaitGroup
	for step := range int64(20) {
		want[step] = float64(step)
		all.Go(func() {
			must(t, l.Scalars(step, map[string]float64{"loss": float64(step)}), l.Image(step, "samples", image.NewGray(image.Rect(0, 0, 2, 2))))
		})
	}
	all.Wait()
	must(t, l.Close())
	k.wantLoss(t, dir, want)
}

func (k Kind) callersValues(t *testing.T) {
	dir := t.TempDir()
	l := k.open(t, dir)
	values := map[string]float64{}
	params := map[string]any{"lr": 0.5}
	weights := []float64{1, 2}
	img := image.NewGray(image.Rect(0, 0, 2, 2))
	must(t, l.Params(params), l.Histogram(0, "weights", weights), l.Image(0, "samples", img))
	params["lr"], weights[0], img.Pix[0] = "none", 7, 9
	want := map[int64]float64{}
	for step := range int64(10) {
		values["loss"] = float64(step)
		want[step] = float64(step)
		must(t, l.Scalars(step, values))
		values["loss"] = -1
	}
	must(t, l.Close())
	k.wantLoss(t, dir, want)
}

// resume records steps 1 to 4, and in a second session resumes after step 2: each step has one
// record.
func (k Kind) resume(t *testing.T) {
	dir := t.TempDir()
	l := k.open(t, dir)
	for step := range int64(4) {
		must(t, l.Scalars(step+1, map[string]float64{"loss": float64(step + 1)}))
	}
	must(t, l.Close())

	l = k.open(t, dir)
	want := map[int64]float64{1: 1, 2: 2, 3: 3, 4: 4} // If the logger can't rewind, a recorded step stays as it is.
	if r, ok := l.(logger.Rewinder); ok {
		must(t, r.Rewind(2), r.Rewind(2))
		want = map[int64]float64{1: 1, 2: 2, 3: 7}
	}
	must(t, l.Scalars(3, map[string]float64{"loss": 7}), l.Close())
	k.wantLoss(t, dir, want)
}

func (k Kind) closed(t *testing.T) {
	l := k.open(t, t.TempDir())
	must(t, l.Close(), l.Close())
	if err := l.Scalars(1, map[string]float64{"loss": 1}); !errors.Is(err, logger.ErrClosed) {
		t.Errorf("Scalars after Close: %v, want ErrClosed", err)
	}
	if r, ok := l.(logger.Rewinder); ok {
		if err := r.Rewind(1); !errors.Is(err, logger.ErrClosed) {
			t.Errorf("Rewind after Close: %v, want ErrClosed", err)
		}
	}
}
