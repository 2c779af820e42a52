package logger

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// TensorBoard writes an event file to a folder that `tensorboard --logdir` shows: scalars (in
// single precision, as TensorBoard stores them), images, histograms of 64 equal buckets, and
// hyper-parameters for its HPARAMS tab. It ignores artifacts.
//
// If it is opened again on the same folder, it adds another event file, as TensorBoard's own
// writers do. The first step that is then logged, or Rewind, marks where the training resumes;
// older records from that step on are no longer shown.
type TensorBoard struct {
	record
	path      string
	file      *os.File
	resumes   bool // A session start must come before the next step's first event.
	params    map[string]any
	hasParams bool // They are in the file.
	now       func() time.Time
}

var (
	_ Logger   = (*TensorBoard)(nil)
	_ Rewinder = (*TensorBoard)(nil)
)

const eventFilePrefix = "events.out.tfevents."

// NewTensorBoard opens the folder dir, and creates it if it is missing.
func NewTensorBoard(dir string) (*TensorBoard, error) {
	l := &TensorBoard{params: map[string]any{}, now: time.Now}
	if err := l.open(dir); err != nil {
		return nil, fmt.Errorf("logger: TensorBoard: %w", err)
	}
	return l, nil
}

// open creates the event file. Readers read a folder's event files in the order of their names, so
// the name begins with the time.
func (l *TensorBoard) open(dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	older, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	now := l.now()
	name := fmt.Sprintf("%s%010d.%09d.%s.%d", eventFilePrefix, now.Unix(), now.Nanosecond(), host, os.Getpid())
	l.path = filepath.Join(dir, name)
	l.resumes = slices.ContainsFunc(older, func(e os.DirEntry) bool { return strings.HasPrefix(e.Name(), eventFilePrefix) })
	l.file, err = os.OpenFile(l.path, os.O_APPEND|os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	return l.write(event(now, 0, eventFileVersion, []byte("brain.Event:2")))
}

// Params records hyper-parameters for the HPARAMS tab. TensorBoard shows only the first such record
// of a folder, so those of all calls are written together, before the first event of a step or by
// Close. Later ones are not shown.
func (l *TensorBoard) Params(params map[string]any) error {
	return l.do("record in "+l.path, func() error {
		maps.Copy(l.params, params)
		return nil
	})
}

// Scalars records metrics at a step.
func (l *TensorBoard) Scalars(step int64, values map[string]float64) error {
	var summary [][]byte
	for _, name := range slices.Sorted(maps.Keys(values)) {
		summary = append(summary, scalarValue(name, values[name]))
	}
	return l.add(step, summary...)
}

// Rewind makes readers ignore the events of later steps in older files. It changes nothing in the
// file of this process.
func (l *TensorBoard) Rewind(step int64) error {
	return l.do("rewind "+l.path, func() error {
		if !l.resumes {
			return nil
		}
		err := l.write(l.sessionStart(step + 1))
		l.resumes = err != nil
		return err
	})
}

func (l *TensorBoard) sessionStart(step int64) []byte {
	return event(l.now(), step, eventSessionLog, appendInt(nil, sessionLogStatus, sessionStart))
}

// Image records an image as PNG.
func (l *TensorBoard) Image(step int64, name string, img image.Image) error {
	var text bytes.Buffer
	if err := png.Encode(&text, img); err != nil {
		return fmt.Errorf("logger: image %s of step %d: %w", name, step, err)
	}
	size := img.Bounds().Size()
	return l.add(step, imageValue(name, size.X, size.Y, channels(img), text.Bytes()))
}

// channels returns the number of values per pixel, as TensorBoard counts them.
func channels(img image.Image) int {
	switch img.(type) {
	case *image.Gray, *image.Gray16:
		return 1
	}
	return 4
}

// Histogram records the distribution of the finite values. If there are others, it returns an error
// with their number.
func (l *TensorBoard) Histogram(step int64, name string, values []float64) error {
	h, notFinite := newHistogram(values)
	var err error
	if notFinite > 0 {
		err = fmt.Errorf("logger: histogram %s of step %d: %d of %d values are NaN or infinite and left out", name, step, notFinite, len(values))
	}
	if h.count == 0 {
		return err
	}
	return errors.Join(l.add(step, histogramValue(name, h)), err)
}

// add writes an event with the values. In a resumed session, the first event of a step is preceded
// by a session start.
func (l *TensorBoard) add(step int64, values ...[]byte) error {
	return l.do("record in "+l.path, func() error {
		if err := l.writeParams(); err != nil {
			return err
		}
		var events [][]byte
		if l.resumes {
			events = append(events, l.sessionStart(step))
		}
		err := l.write(append(events, l.summary(step, values...))...)
		l.resumes = l.resumes && err != nil
		return err
	})
}

// writeParams writes the hyper-parameters, unless this process has written some.
func (l *TensorBoard) writeParams() error {
	if l.hasParams || len(l.params) == 0 {
		return nil
	}
	err := l.write(l.summary(0, hparamsStart(l.now(), l.params)))
	l.hasParams = err == nil
	return err
}

func (l *TensorBoard) summary(step int64, values ...[]byte) []byte {
	var all []byte
	for _, value := range values {
		all = appendBytes(all, protowire.Number(summaryValue), value)
	}
	return event(l.now(), step, eventSummary, all)
}

// write appends events in a single write.
func (l *TensorBoard) write(events ...[]byte) error {
	var records []byte
	for _, e := range events {
		records = appendRecord(records, e)
	}
	return writeWhole(l.file, records)
}

// Close ends the session and closes the file.
func (l *TensorBoard) Close() error {
	return l.end("record in "+l.path, func() error {
		err := l.writeParams()
		if err == nil && l.hasParams {
			err = l.write(l.summary(0, hparamsEnd(l.now())))
		}
		return errors.Join(err, l.file.Close())
	})
}
