package logger

import (
	"errors"
	"image"
)

// Logger records a training. All methods may be called at once from several goroutines. They block
// until the record is written or, for a tracking server, until it has answered or its time limit
// has passed; only Multi's never block on a logger. They may be repeated: a value logged again for
// the same step is a second record. After an error the logger is still usable.
//
// A logger ignores what its format can't hold: each says what that is. The caller may change maps,
// slices and images after the call.
type Logger interface {
	// Params records hyper-parameters: strings, booleans and numbers; any other value by its text.
	Params(params map[string]any) error
	// Scalars records metrics of a step. NaN and infinities are values like others.
	Scalars(step int64, values map[string]float64) error
	// Image records an image of a step.
	Image(step int64, name string, img image.Image) error
	// Histogram records the distribution of values at a step.
	Histogram(step int64, name string, values []float64) error
	// Artifact records a file, which must stay as it is until Close returns.
	Artifact(path string) error
	// Close writes what is held back and ends the record. A second Close does nothing.
	Close() error
}

// Rewinder is a Logger that can go back. A training that goes on from a checkpoint logs the steps
// after it again: what an earlier process recorded of them is then forgotten, so that each step has
// one record. It may be called at any time, and again.
type Rewinder interface {
	// Rewind forgets what was recorded after the step. A metric that is kept is not recorded a
	// second time for the same step.
	Rewind(step int64) error
}

// ModelLogger is a Logger that records trained models.
type ModelLogger interface {
	// Model records the weights, in a safetensors file, under a name such as "model". The file must
	// stay as it is until Close returns.
	Model(name, weights string) error
}

// ErrClosed is the error of a call after Close.
var ErrClosed = errors.New("the logger is closed")

// scalarsOnly ignores what a file of metrics can't hold.
type scalarsOnly struct{}

// Params does nothing.
func (scalarsOnly) Params(map[string]any) error { return nil }

// Image does nothing.
func (scalarsOnly) Image(int64, string, image.Image) error { return nil }

// Histogram does nothing.
func (scalarsOnly) Histogram(int64, string, []float64) error { return nil }

// Artifact does nothing.
func (scalarsOnly) Artifact(string) error { return nil }
