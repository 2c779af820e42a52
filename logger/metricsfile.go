package logger

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"gonbatch/internal/rundir"
)

// metricsFile is a file to which a logger appends metrics. Its methods hold the lock while they
// call the logger's own.
type metricsFile struct {
	record
	options options
	path    string
	file    *os.File
	kept    recorded
	now     func() time.Time
}

// open opens the file at path, and creates it if it is missing.
func (m *metricsFile) open(path string, all []Option) (err error) {
	m.options, m.path, m.now = newOptions(all), path, time.Now
	m.file, err = openLines(path)
	return err
}

// add calls write to append the values that the file doesn't have yet.
func (m *metricsFile) add(step int64, values map[string]float64, write func(step int64, fresh map[string]float64) error) error {
	return m.do("record metrics in "+m.path, func() error {
		for _, own := range []string{"step", "time", "training"} {
			if _, taken := values[own]; taken {
				return fmt.Errorf("the metric %q has the name of a field that each record has: rename it", own)
			}
		}
		fresh := m.kept.fresh(step, values)
		if len(fresh) == 0 && len(values) > 0 {
			return nil
		}
		return write(step, fresh)
	})
}

// goBack calls remove to remove the later steps from the file.
func (m *metricsFile) goBack(step int64, remove func(step int64) error) error {
	return m.do(fmt.Sprintf("go back to step %d in %s", step, m.path), func() error { return remove(step) })
}

// replace atomically replaces the file's content.
func (m *metricsFile) replace(content []byte) error {
	if err := rundir.WriteFileAtomic(m.path, content, 0o644); err != nil {
		return err
	}
	f, err := openLines(m.path)
	if err != nil {
		return err
	}
	old := m.file
	m.file = f
	return old.Close()
}

// openLines opens a file of lines for appending, and creates it if it is missing. It removes an
// incomplete last line, left by a process that ended while writing.
func openLines(path string) (*os.File, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() { // A pipe would wait for a reader.
		return nil, fmt.Errorf("%s is not a regular file but %s: choose another name", path, info.Mode().Type())
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(f)
	if whole := bytes.LastIndexByte(text, '\n') + 1; err == nil && whole < len(text) {
		err = f.Truncate(int64(whole))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("remove the half-written last line of %s: %w", path, err), f.Close())
	}
	return f, nil
}

// writeWhole appends all of a text to a file, or nothing: what follows a part of it, all that a
// full disk has taken, could not be read.
func writeWhole(file *os.File, text []byte) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if _, err := file.Write(text); err != nil {
		return errors.Join(err, file.Truncate(info.Size()))
	}
	return nil
}

// time returns the time of a record.
func (m *metricsFile) time() string { return m.now().UTC().Format(time.RFC3339Nano) }

// Close closes the file.
func (m *metricsFile) Close() error {
	return m.end("close "+m.path, func() error { return m.file.Close() })
}

// recorded has the last step of each metric that an earlier process recorded.
type recorded map[string]int64

func (r recorded) note(name string, step int64) {
	if last, ok := r[name]; !ok || step > last {
		r[name] = step
	}
}

// fresh returns the values that are not recorded yet.
func (r recorded) fresh(step int64, values map[string]float64) map[string]float64 {
	if len(r) == 0 {
		return values
	}
	left := make(map[string]float64, len(values))
	for name, value := range values {
		if last, ok := r[name]; !ok || step > last {
			left[name] = value
		}
	}
	return left
}
