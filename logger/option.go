package logger

// Option changes a logger that writes a file of metrics.
type Option func(*options)

type options struct{ training string }

// Training names the training in each record, and makes Rewind forget records of that training
// only: for a file that several share.
func Training(name string) Option { return func(o *options) { o.training = name } }

func newOptions(all []Option) options {
	var o options
	for _, change := range all {
		change(&o)
	}
	return o
}
