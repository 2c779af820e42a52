package logger

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// edgeValues are metrics of trainings that go wrong, or are very good.
var edgeValues = map[string][]float64{
	"one":      {3},
	"constant": {2, 2, 2},
	"zero":     {0, 0},
	"NaN":      {math.NaN(), math.NaN()},
	"infinite": {math.Inf(1), math.Inf(-1), 1},
	"huge":     {math.MaxFloat64, -math.MaxFloat64, 0},
	"tiny":     {5e-324, 0, -5e-324},
	"close":    {1, math.Nextafter(1, 2), math.Nextafter(1, 0)},
	"large":    {1e300, math.Nextafter(1e300, 2e300)},
	"float32":  {math.MaxFloat32, 1e39, -1e39},
}

// TestEdgeValues: every logger records them, and none takes for ever.
func TestEdgeValues(t *testing.T) {
	for name, values := range edgeValues {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			done := make(chan error, 1)
			go func() { done <- logAll(dir, values) }()
			select {
			case err := <-done:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(2 * time.Minute):
				t.Fatal("a logger does not return")
			}
		})
	}
}

func logAll(dir string, values []float64) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	lines, err := NewJSONLines(filepath.Join(dir, "metrics.jsonl"))
	if err != nil {
		return err
	}
	table, err := NewCSV(filepath.Join(dir, "metrics.csv"))
	if err != nil {
		return err
	}
	board, err := NewTensorBoard(filepath.Join(dir, "board"))
	if err != nil {
		return err
	}
	curves, err := NewCurves(CurvesOptions{Dir: filepath.Join(dir, "curves")})
	if err != nil {
		return err
	}
	folder, err := NewMLflow(MLflowOptions{TrackingURI: filepath.Join(dir, "mlruns")})
	if err != nil {
		return err
	}
	for _, l := range []Logger{lines, table, board, curves, folder} {
		for step, value := range values {
			if err := l.Scalars(int64(step), map[string]float64{"val/loss": value}); err != nil {
				return fmt.Errorf("%T: %w", l, err)
			}
			if err := l.Params(map[string]any{"lr": value}); err != nil && step == 0 {
				return fmt.Errorf("%T: %w", l, err)
			}
		}
		_ = l.Histogram(1, "weights", values) // It says what is not finite.
		if err := l.Close(); err != nil {
			return fmt.Errorf("%T: %w", l, err)
		}
	}
	_, err = os.Stat(filepath.Join(dir, "metrics.jsonl"))
	return err
}

// TestHistogramEdges: each finite value is in one bucket, whatever the range.
func TestHistogramEdges(t *testing.T) {
	for name, values := range edgeValues {
		h, notFinite := newHistogram(values)
		var sum float64
		for _, n := range h.counts {
			sum += n
		}
		if int(sum)+notFinite != len(values) || sum != h.count || len(h.limits) != len(h.counts) {
			t.Errorf("%s: %v finite values in buckets, %d not finite, of %d: %+v", name, sum, notFinite, len(values), h)
		}
	}
}
