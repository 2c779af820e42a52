package logger

import (
	"errors"
	"image"
)

// Logger records a training run. Its methods may be called concurrently. They block until the
// record is written or, for a tracking server, until it has responded or its timeout has passed;
// only Multi's methods never block on a logger. Calls may be repeated: logging a value again for
// the same step makes a second record. After an error the logger is still usable.
//
// A logger ignores records that its format can't hold; each logger documents which. The caller may
// change maps, slices and images after the call.
type Logger interface {
	// Params records hyper-parameters: strings, booleans and numbers. Any other value is recorded
	// as text. The parameters of several calls are merged.
	Params(params map[string]any) error
	// Scalars records metrics at a step. They may be NaN or infinite.
	Scalars(step int64, values map[string]float64) error
	// Image records an image at a step.
	Image(step int64, name string, img image.Image) error
	// Histogram records the distribution of values at a step.
	Histogram(step int64, name string, values []float64) error
	// Artifact records a file, which must not change until Close returns.
	Artifact(path string) error
	// Close writes what is still queued and ends the record. A second Close does nothing.
	Close() error
}

// Rewinder is a Logger that can go back. A training run that resumes from a checkpoint logs the
// steps after it again; Rewind removes an earlier process's records of those steps, so that each
// step has one record. It may be called at any time, and repeated.
type Rewinder interface {
	// Rewind removes records of later steps. A metric that stays isn't recorded a second time for
	// the same step.
	Rewind(step int64) error
}

// ModelLogger is a Logger that records trained models.
type ModelLogger interface {
	// Model records the weights in a safetensors file, under a name such as "model". The file must
	// not change until Close returns.
	Model(name, weights string) error
}

// ErrClosed is the error of a call after Close.
var ErrClosed = errors.New("the logger is closed")

// Option configures a logger that writes a file of metrics or hyper-parameters.
type Option func(*options)

type options struct {
	training string
	first    func(param string) bool
}

// Training names the training in each record, and limits Rewind to records of that training run.
// Use it for a file that several training runs share.
func Training(name string) Option { return func(o *options) { o.training = name } }

// First makes a ParamsFile put some of the hyper-parameters of a call before the others.
func First(is func(param string) bool) Option { return func(o *options) { o.first = is } }

func newOptions(all []Option) options {
	o := options{first: func(string) bool { return false }}
	for _, change := range all {
		change(&o)
	}
	return o
}
