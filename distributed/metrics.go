package distributed

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"time"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/rundir"
)

// Log records values of a step: rank 0 appends a JSON object on a line of its own to metrics.jsonl in the run directory, with the step, the time
// (RFC 3339) and the name of the program's step. Without a run directory it does nothing.
// A value that JSON can't hold (NaN, infinity) is written as text.
func (w *World) Log(step int64, values map[string]float64) error {
	if !w.IsMain() || w.run == (rundir.Dir{}) {
		return nil
	}
	if w.metrics == nil {
		f, err := os.OpenFile(w.run.Metrics(), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			return fmt.Errorf("distributed: record metrics: %w", err)
		}
		w.metrics = &metricsFile{file: f}
	}
	return w.metrics.append(step, values)
}

type metricsFile struct{ file *os.File }

func (m *metricsFile) append(step int64, values map[string]float64) error {
	line := map[string]any{}
	for name, value := range maps.All(values) {
		if math.IsNaN(value) || math.IsInf(value, 0) {
			line[name] = fmt.Sprint(value)
			continue
		}
		line[name] = value
	}
	line["step"] = step
	line["time"] = time.Now().UTC().Format(time.RFC3339Nano)
	text, err := json.Marshal(line) // Sorts the names.
	if err != nil {
		return fmt.Errorf("distributed: record metrics: %w", err)
	}
	if _, err := m.file.Write(append(text, '\n')); err != nil {
		return fmt.Errorf("distributed: record metrics: %w", err)
	}
	return nil
}

func (m *metricsFile) close() error {
	if m == nil {
		return nil
	}
	return m.file.Close()
}

// scalar is the value of a metric.
func scalar(t *tensors.Tensor) (float64, error) {
	if t.Size() != 1 {
		return 0, fmt.Errorf("distributed: a metric of shape %s: it must be a scalar", t.Shape())
	}
	return shapes.ConvertTo[float64](t.Value()), nil
}
