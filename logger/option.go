package logger

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
