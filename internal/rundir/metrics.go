package rundir

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"strings"
	"time"
)

// Measurement is a line of the metrics: the values that a training run measured at a step.
type Measurement struct {
	Step int64
	Time time.Time
	// Training is the training's name if the run has several; otherwise it is empty.
	Training string
	// Values are the metrics by name, such as "train/loss". They may be NaN or infinite.
	Values map[string]float64
}

// ReadMetrics reads the metrics that the run has written so far, in order. It returns none if there
// are none yet.
func ReadMetrics(d Dir) ([]Measurement, error) { return ReadMetricsFile(d.Metrics()) }

// ReadMetricsFile is ReadMetrics for a file.
func ReadMetricsFile(path string) ([]Measurement, error) {
	r := MetricsReader{File: path}
	return r.Read()
}

// MetricsReader reads metrics while a run writes them, and each time only what is new in the file.
// It must be used by one goroutine at a time.
type MetricsReader struct {
	// File is the path of the run's metrics.
	File string

	file   fs.FileInfo
	offset int64
	all    []Measurement
}

// Read returns all metrics that have been written so far. It leaves out a line that is still being
// written or is not a JSON object with a step. The slice belongs to the reader.
func (r *MetricsReader) Read() ([]Measurement, error) {
	f, err := Open(r.File)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("metrics of the run: %w", err)
	}
	defer f.Close() //nolint:errcheck // only read
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("metrics of the run: %w", err)
	}
	// A training run that goes back to a checkpoint replaces the file.
	if r.file == nil || !os.SameFile(r.file, info) || info.Size() < r.offset {
		r.offset, r.all = 0, nil
	}
	r.file = info
	text, err := io.ReadAll(io.NewSectionReader(f, r.offset, info.Size()-r.offset))
	if err != nil {
		return nil, fmt.Errorf("metrics of the run %s: %w", f.Name(), err)
	}
	whole := text[:bytes.LastIndexByte(text, '\n')+1]
	r.offset += int64(len(whole))
	for line := range bytes.Lines(whole) {
		if m, ok := ReadMeasurement(line); ok {
			r.all = append(r.all, m)
		}
	}
	return r.all, nil
}

// ReadMeasurement reads a line of the metrics, and reports whether it is one.
func ReadMeasurement(line []byte) (m Measurement, ok bool) {
	var fields map[string]any
	if json.Unmarshal(line, &fields) != nil {
		return m, false
	}
	m.Values = make(map[string]float64, len(fields))
	for name, value := range fields {
		switch value := value.(type) {
		case float64:
			if name == "step" {
				m.Step, ok = int64(value), true
			} else {
				m.Values[name] = value
			}
		case string:
			m.addText(name, value)
		}
	}
	return m, ok
}

// addText adds a value that is written as text: the time, the training's name, or a number that
// JSON doesn't have.
func (m *Measurement) addText(name, value string) {
	switch name {
	case "time":
		m.Time, _ = time.Parse(time.RFC3339Nano, value) // Without a valid time, it is the zero time.
		return
	case "training":
		m.Training = value
		return
	}
	switch strings.TrimPrefix(value, "+") {
	case "NaN":
		m.Values[name] = math.NaN()
	case "Inf":
		m.Values[name] = math.Inf(1)
	case "-Inf":
		m.Values[name] = math.Inf(-1)
	}
}
