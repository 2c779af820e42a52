package logger

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"

	"gonbatch/internal/rundir"
)

// JSONLines appends metrics to a file, one JSON object per line: the metrics by name, "step",
// "time" in RFC 3339, and "training" if it has a name. Values that JSON lacks are written as the
// strings "NaN", "+Inf" and "-Inf". JSONLines ignores everything except scalars.
type JSONLines struct {
	metricsFile
}

var (
	_ Logger   = (*JSONLines)(nil)
	_ Rewinder = (*JSONLines)(nil)
)

// NewJSONLines opens the file at path, and creates it if it is missing.
func NewJSONLines(path string, options ...Option) (*JSONLines, error) {
	l := &JSONLines{}
	if err := l.open(path, options); err != nil {
		return nil, fmt.Errorf("logger: JSON lines: %w", err)
	}
	return l, nil
}

// Scalars appends a line in one write.
func (l *JSONLines) Scalars(step int64, values map[string]float64) error {
	return l.add(step, values, func(step int64, fresh map[string]float64) error {
		text, err := l.line(step, fresh)
		if err == nil {
			err = writeWhole(l.file, text)
		}
		return err
	})
}

// Rewind removes the training's lines of later steps.
func (l *JSONLines) Rewind(step int64) error { return l.goBack(step, l.rewind) }

func (l *JSONLines) rewind(step int64) error {
	text, err := os.ReadFile(l.path)
	if err != nil {
		return err
	}
	l.kept = recorded{}
	var left []byte
	for line := range bytes.Lines(text) {
		if l.keeps(line, step) {
			left = append(left, line...)
		}
	}
	if len(left) == len(text) {
		return nil
	}
	return l.replace(left)
}

// keeps reports whether a line stays, and records its metrics.
func (l *JSONLines) keeps(line []byte, step int64) bool {
	m, ok := rundir.ReadMeasurement(line)
	if !ok || m.Training != l.options.training {
		return true
	}
	if m.Step > step {
		return false
	}
	for name := range m.Values {
		l.kept.note(name, m.Step)
	}
	return true
}

// line returns a line of the file. Names are sorted.
func (l *JSONLines) line(step int64, values map[string]float64) ([]byte, error) {
	line := make(map[string]any, len(values)+3)
	for name, value := range values {
		if math.IsNaN(value) || math.IsInf(value, 0) {
			line[name] = fmt.Sprint(value)
			continue
		}
		line[name] = value
	}
	line["step"] = step
	line["time"] = l.time()
	if l.options.training != "" {
		line["training"] = l.options.training
	}
	text, err := json.Marshal(line)
	return append(text, '\n'), err
}
