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

	"gonbatch/internal/rundir"
)

// Shell is the environment that a command runs in: streams, environment variables, clock, and the
// way to run other commands. It is read once, at the start of the program.
type Shell struct {
	Out, Err    io.Writer
	Environ     []string
	CommandLine []string
	// Self is the submit command, which runs parts of itself in other folders and in jobs; "" if
	// its path is unknown.
	Self   string
	Now    func() time.Time
	Runner Runner
}

// lookup returns the value of an environment variable, and reports whether it is set.
func (s Shell) lookup(name string) (string, bool) {
	for _, variable := range s.Environ {
		if value, ok := strings.CutPrefix(variable, name+"="); ok {
			return value, true
		}
	}
	return "", false
}

// Getenv returns the value of an environment variable; "" if it is not set.
func (s Shell) Getenv(name string) string {
	value, _ := s.lookup(name)
	return value
}

// IsSet reports whether an environment variable is set.
func (s Shell) IsSet(name string) bool {
	_, set := s.lookup(name)
	return set
}

// Warn warns the user about a problem that does not end the command.
func (s Shell) Warn(format string, args ...any) {
	fmt.Fprintln(s.Err, "submit: warning:", rundir.Printable(fmt.Sprintf(format, args...)))
}

// WarnUnlessForbidden warns about a failed write that matters only later. It is silent if the user
// may not write there, as in a colleague's run.
func (s Shell) WarnUnlessForbidden(err error) {
	if err != nil && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, syscall.EROFS) {
		s.Warn("%v", err)
	}
}

// CheckSecrets refuses a job whose secrets are not in the shell's environment.
func (s Shell) CheckSecrets(spec JobSpec) error {
	for _, name := range spec.Secrets {
		if _, isSet := s.lookup(name); !isSet {
			return Usagef("--secret %s: your shell exports no variable of that name; export %s=... first", name, name)
		}
	}
	return nil
}

// Output is a writer that remembers its first error: losing a report on a full disk is a failure.
type Output struct {
	io.Writer
	Err error
}

// Write writes text.
func (o *Output) Write(text []byte) (int, error) {
	n, err := o.Writer.Write(text)
	o.Err = cmp.Or(o.Err, err)
	return n, err
}
