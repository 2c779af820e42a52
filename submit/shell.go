package submit

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"syscall"
	"time"
)

// Shell is the shell that a command was called from: its streams, its environment, its clock, and
// the way to run other commands. It is read once, where the program begins.
type Shell struct {
	Out, Err    io.Writer
	Environ     []string
	CommandLine []string
	Now         func() time.Time
	Runner      Runner
}

// Lookup is the value of an environment variable, and whether it is set.
func (s Shell) Lookup(name string) (string, bool) {
	for _, variable := range s.Environ {
		if value, ok := strings.CutPrefix(variable, name+"="); ok {
			return value, true
		}
	}
	return "", false
}

// Getenv is the value of an environment variable; "" where it is not set.
func (s Shell) Getenv(name string) string {
	value, _ := s.Lookup(name)
	return value
}

// Warn tells the user of something that does not end the command.
func (s Shell) Warn(format string, args ...any) {
	fmt.Fprintf(s.Err, "submit: warning: "+format+"\n", args...)
}

// WarnUnlessForbidden warns of what could not be written, and is only written for later. A user who
// may not write there, as in a colleague's run, need not hear of it.
func (s Shell) WarnUnlessForbidden(err error) {
	if err != nil && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, syscall.EROFS) {
		s.Warn("%v", err)
	}
}

// CheckSecrets refuses a job whose secrets are not in the environment that it gets.
func (s Shell) CheckSecrets(spec JobSpec) error {
	for _, name := range spec.Secrets {
		if _, isSet := s.Lookup(name); !isSet {
			return Usagef("--secret %s: your shell exports no variable of that name; export %s=... first", name, name)
		}
	}
	return nil
}

// Output keeps the first error of writing: a report that is lost on a full disk is a failure.
type Output struct {
	io.Writer
	Err error
}

// Write passes on text.
func (o *Output) Write(text []byte) (int, error) {
	n, err := o.Writer.Write(text)
	o.Err = cmp.Or(o.Err, err)
	return n, err
}
