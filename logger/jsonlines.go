package logger

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"sync"
	"time"
)

// JSONLines appends metrics to a file, one JSON object a line: the metrics by name, "step", and "time" in RFC 3339. A value that JSON
// can't hold (NaN, an infinity) is written as text: "NaN", "+Inf", "-Inf". It ignores all but scalars.
type JSONLines struct {
	scalarsOnly
	mu   sync.Mutex
	path string
	file *os.File // nil once closed
	now  func() time.Time
}

var _ Logger = (*JSONLines)(nil)

// NewJSONLines opens the file at path and makes it if it is missing.
func NewJSONLines(path string) (*JSONLines, error) {
	f, err := openLines(path)
	if err != nil {
		return nil, fmt.Errorf("logger: JSON lines: %w", err)
	}
	return &JSONLines{path: path, file: f, now: time.Now}, nil
}

// Scalars appends a line, in one write.
func (l *JSONLines) Scalars(step int64, values map[string]float64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return fmt.Errorf("logger: record metrics in %s: %w", l.path, ErrClosed)
	}
	text, err := jsonLine(step, l.now(), values)
	if err != nil {
		return fmt.Errorf("logger: record metrics in %s: %w", l.path, err)
	}
	if _, err := l.file.Write(text); err != nil {
		return fmt.Errorf("logger: record metrics: %w", err)
	}
	return nil
}

// Close closes the file.
func (l *JSONLines) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	f := l.file
	l.file = nil
	return f.Close()
}

// jsonLine is a line of the file. Names are sorted.
func jsonLine(step int64, now time.Time, values map[string]float64) ([]byte, error) {
	line := make(map[string]any, len(values)+2)
	for name, value := range values {
		if math.IsNaN(value) || math.IsInf(value, 0) {
			line[name] = fmt.Sprint(value)
			continue
		}
		line[name] = value
	}
	line["step"] = step
	line["time"] = now.UTC().Format(time.RFC3339Nano)
	text, err := json.Marshal(line)
	return append(text, '\n'), err
}
