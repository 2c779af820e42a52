package logger

// Option configures a logger that writes a file of metrics.
type Option func(*options)

type options struct{ training string }

// Training names the training in each record, and limits Rewind to records of that training run.
// Use it for a file that several training runs share.
func Training(name string) Option { return func(o *options) { o.training = name } }

func newOptions(all []Option) options {
	var o options
	for _, change := range all {
		change(&o)
	}
	return o
}
